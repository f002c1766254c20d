//! What can be done with the audit record without serving: walk along its chains, and take it away. It is only read; a server
//! may go on beside it.

use std::sync::Arc;

use super::StartError;
use crate::agent::ports::audit::{AuditRecord, Break, Chain, Walk};
use crate::agent::ports::clock::SystemClock;
use crate::agent::ports::store_error::StoreError;
use crate::chat::audit::TOKENS;
use crate::config::Config;
use crate::http::audit::json_line;
use crate::store;

/// Lines that are read at once.
const READ_AT_ONCE: u32 = 1000;

/// Why the record could not be read.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    /// The database could not be opened.
    #[error(transparent)]
    Open(#[from] StartError),
    /// It could not be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// It could not be written where it should go.
    #[error("the record could not be written")]
    Write(#[from] std::io::Error),
    /// It has no such chain.
    #[error("there is no chain {0:?}")]
    NoChain(String),
}

/// A chain that was walked.
#[derive(Debug)]
pub struct Verified {
    /// The chain, with its end as it was when the walk began.
    pub chain: Chain,
    /// How many lines hold.
    pub lines: u64,
    /// The first record where it does not.
    pub broken: Option<Break>,
}

/// Walks along all chains of the record that `config` names, each to its first break.
///
/// # Errors
/// When it could not be read.
pub async fn verify_audit(config: &Config) -> Result<Vec<Verified>, AuditError> {
    let record = open(config).await?;
    let mut verified = Vec::new();
    for chain in record.chains().await? {
        verified.push(walk(&*record, chain).await?);
    }
    Ok(verified)
}

async fn walk(record: &dyn AuditRecord, chain: Chain) -> Result<Verified, AuditError> {
    let mut walk = Walk::default();
    let mut broken = None;
    // Lines that are chained meanwhile are for the next walk.
    while broken.is_none() && walk.seq() < chain.seq {
        let left = chain.seq.saturating_sub(walk.seq()).min(u64::from(READ_AT_ONCE));
        let page = record.lines(&chain.name, walk.seq(), u32::try_from(left).unwrap_or(READ_AT_ONCE)).await?;
        if page.is_empty() {
            break;
        }
        broken = page.iter().find_map(|line| walk.step(line).err());
    }
    let lines = walk.seq();
    let broken = broken.or_else(|| walk.end(&chain).err());
    Ok(Verified { chain, lines, broken })
}

/// Gives the lines of one chain, or of all, to `write`, each as JSON on a line of its own.
///
/// # Errors
/// When they could not be read or written.
pub async fn export_audit(
    config: &Config,
    only: Option<&str>,
    mut write: impl FnMut(&str) -> std::io::Result<()>,
) -> Result<(), AuditError> {
    let record = open(config).await?;
    let chains = record.chains().await?;
    let is_unknown = |only: &&str| *only != TOKENS && chains.iter().all(|chain| chain.name != **only);
    if let Some(only) = only.filter(is_unknown) {
        return Err(AuditError::NoChain(only.to_owned()));
    }
    for chain in chains.into_iter().filter(|chain| only.is_none_or(|only| only == chain.name)) {
        let mut after = 0;
        loop {
            let page = record.lines(&chain.name, after, READ_AT_ONCE).await?;
            let Some(last) = page.last().map(|line| line.seq) else { break };
            for line in page {
                write(&json_line(line).map_err(std::io::Error::other)?)?;
            }
            after = last;
        }
    }
    Ok(())
}

async fn open(config: &Config) -> Result<Arc<dyn AuditRecord>, StartError> {
    Ok(store::open_audit(&config.store, Arc::new(SystemClock)).await?)
}
