//! Tokens that an issuer gives this server for one backend: one for each tenant (RFC 6749, section 4.4), or one in exchange
//! for each token of a caller (RFC 8693). They are kept in memory, and nowhere else.

use std::sync::Arc;
use std::time::{Duration, Instant};

use aws_lc_rs::digest::{SHA256, digest};
use moka::Expiry;
use moka::future::Cache;
use moka::ops::compute::{CompResult, Op};
use secrecy::SecretString;

use super::asking::{Asker, Given};
use super::config::Grant;
use super::error::NoToken;
use crate::chat::caller::{Caller, Owner};

/// So long before its end a token is replaced, or a fifth of its life where that is shorter.
const EARLY: Duration = Duration::from_secs(30);

/// A token in the place of a refused one is not replaced itself for 10 seconds: a backend that takes none at all costs its
/// issuer no more than that.
const YOUNG: Duration = Duration::from_secs(10);

/// Tokens that are kept at most, of each backend.
const MOST: u64 = 10_000;

/// The tokens for one backend.
#[derive(Debug)]
pub(super) struct Issuer {
    asker: Asker,
    kept: Cache<Key, Arc<Issued>>,
}

/// For whom a token was given.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Key {
    Tenant(String),
    /// A caller, and the digest of the token that was exchanged.
    Caller(Owner, Vec<u8>),
}

/// A token.
#[derive(Debug)]
pub(super) struct Issued {
    pub(super) token: SecretString,
    serves: Duration,
    /// When it took the place of a refused one, if it did.
    replaced_at: Option<Instant>,
}

/// Tokens go when their time is over.
struct ByLife;

impl Expiry<Key, Arc<Issued>> for ByLife {
    fn expire_after_create(&self, _: &Key, issued: &Arc<Issued>, _: Instant) -> Option<Duration> {
        Some(issued.serves)
    }

    fn expire_after_update(&self, _: &Key, issued: &Arc<Issued>, _: Instant, _: Option<Duration>) -> Option<Duration> {
        Some(issued.serves)
    }
}

impl Issuer {
    /// The tokens for which it asks so, of which there are none yet.
    pub(super) fn new(asker: Asker) -> Self {
        Self { asker, kept: Cache::builder().max_capacity(MOST).expire_after(ByLife).build() }
    }

    /// The token with which a request of `caller` goes out. Those who ask at once wait for one.
    ///
    /// # Errors
    /// When there is none to be had now.
    pub(super) async fn token(&self, caller: &Caller) -> Result<Arc<Issued>, NoToken> {
        let given = self.kept.try_get_with(self.key(caller), self.ask(caller, None)).await;
        given.map_err(|error| *error)
    }

    /// The token in the place of `refused`, which the backend takes no more; `None` where it is refused as soon after
    /// another one. Those who ask at once wait for one.
    ///
    /// # Errors
    /// When there is none to be had now.
    pub(super) async fn fresh(&self, caller: &Caller, refused: &Arc<Issued>) -> Result<Option<Arc<Issued>>, NoToken> {
        if refused.replaced_at.is_some_and(|at| at.elapsed() < YOUNG) {
            return Ok(None);
        }
        let entry = self.kept.entry(self.key(caller));
        let replaced = entry.and_try_compute_with(async |kept| match kept {
            // Somebody else has got one meanwhile.
            Some(kept) if !Arc::ptr_eq(kept.value(), refused) => Ok(Op::Nop),
            Some(_) | None => self.ask(caller, Some(Instant::now())).await.map(Op::Put),
        });
        Ok(match replaced.await? {
            CompResult::Inserted(entry) | CompResult::ReplacedWith(entry) | CompResult::Unchanged(entry) => {
                Some(entry.into_value())
            }
            CompResult::Removed(_) | CompResult::StillNone(_) => None,
        })
    }

    fn key(&self, caller: &Caller) -> Key {
        match self.asker.grant() {
            Grant::ClientCredentials => Key::Tenant(caller.owner.tenant.clone()),
            Grant::TokenExchange => {
                let token = digest(&SHA256, caller.bearer.expose().as_bytes());
                Key::Caller(caller.owner.clone(), token.as_ref().to_vec())
            }
        }
    }

    async fn ask(&self, caller: &Caller, replaced_at: Option<Instant>) -> Result<Arc<Issued>, NoToken> {
        let Given { token, life } = self.asker.ask(caller).await?;
        Ok(Arc::new(Issued { token, serves: life.saturating_sub(EARLY.min(life / 5)), replaced_at }))
    }
}
