//! The audit record's port. Most lines are written by the store itself, in the transaction of the fact that they tell:
//! a write before it is sent and when it has ended, a decision, a preview. Here are noted what changes nothing in the store,
//! and here the record is chained, read and checked.

use async_trait::async_trait;
use serde_json::json;

use super::store_error::StoreError;
use crate::chat::audit::{AuditLine, Fact, Part};
use crate::chat::digest::sha256_hex;

/// Reads the audit record: a chain of lines for each tenant, and one for refused tokens.
#[async_trait]
pub trait AuditRecord: Send + Sync {
    /// The lines of a chain behind number `after`, oldest first, at most `most`. What was committed before is among them.
    ///
    /// # Errors
    /// When they could not be read.
    async fn lines(&self, chain: &str, after: u64, most: u32) -> Result<Vec<AuditLine>, StoreError>;

    /// All chains, with their last number and digest as they are kept beside them, and how many lines wait to be chained.
    ///
    /// # Errors
    /// When they could not be read.
    async fn chains(&self) -> Result<Vec<Chain>, StoreError>;
}

/// Keeps it.
#[async_trait]
pub trait AuditStore: AuditRecord {
    /// Adds a line to the chain.
    ///
    /// # Errors
    /// When it could not be committed.
    async fn note(&self, chain: &str, fact: Fact<'_>) -> Result<(), StoreError>;

    /// Chains lines that were committed since the last time, some of them, in the order in which they were written: each
    /// gets its number and its digest, which is over the digest before it. They are never changed afterwards. Returns those
    /// lines.
    ///
    /// # Errors
    /// When it could not be done; they are chained the next time.
    async fn seal(&self) -> Result<Vec<AuditLine>, StoreError>;

    /// Chains with lines that were not sent away, some of them, each with the number of the last line that was.
    ///
    /// # Errors
    /// When they could not be read.
    async fn unsent(&self) -> Result<Vec<(String, u64)>, StoreError>;

    /// Notes that the lines of a chain up to number `seq` were sent away.
    ///
    /// # Errors
    /// When it could not be noted; then they are sent again.
    async fn note_sent(&self, chain: &str, seq: u64) -> Result<(), StoreError>;
}

/// Where lines go besides the record: a collector. It gets each at least once, in the order of its chain.
#[async_trait]
pub trait AuditSink: Send + Sync {
    /// Hands over lines of one chain.
    ///
    /// # Errors
    /// When they were not taken.
    async fn send(&self, lines: Vec<AuditLine>) -> Result<(), NotTaken>;
}

/// Why a collector has not taken lines.
#[derive(Debug, thiserror::Error)]
pub enum NotTaken {
    /// It may take them later.
    #[error("the collector does not take lines of the audit record")]
    Yet(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// Something in them is wrong to it, and will be.
    #[error("the collector refuses lines of the audit record")]
    Refused(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// A chain, as it is kept beside its lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chain {
    /// Its name.
    pub name: String,
    /// The number of its last line.
    pub seq: u64,
    /// The digest of its last line.
    pub digest: String,
    /// How many lines are not in it yet.
    pub waiting: u64,
}

/// The digest of a line: SHA-256 of the JSON text, without blanks, of a list of its parts ([`AuditLine::parts`]), the previous
/// line's digest last.
pub fn digest_of(line: &AuditLine) -> String {
    let parts = line.parts().map(|(_, part)| match part {
        Part::Text(text) => json!(text),
        Part::Number(number) => json!(number),
    });
    sha256_hex(json!(parts).to_string().as_bytes())
}

/// Where a chain does not hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Break {
    /// A number is missing, or there twice.
    #[error("line {expected} is missing: line {found} is in its place")]
    Missing {
        /// The number that should come.
        expected: u64,
        /// The one that does.
        found: u64,
    },
    /// It does not follow the line before it.
    #[error("line {0} does not follow the one before it")]
    Unlinked(u64),
    /// It is not what was chained.
    #[error("line {0} was changed")]
    Changed(u64),
    /// The chain ends before its end.
    #[error("the chain ends at line {found}, and had {expected}")]
    Cut {
        /// The number of its last line.
        expected: u64,
        /// The number of the last one that is there.
        found: u64,
    },
    /// Its last line is another one than is kept beside it.
    #[error("the last line is not the one that is kept beside the chain")]
    OtherEnd,
}

/// Walks along a chain.
#[derive(Debug, Clone, Default)]
pub struct Walk {
    seq: u64,
    digest: String,
}

impl Walk {
    /// The number of the last line that held.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// One line further.
    ///
    /// # Errors
    /// See [`Break`].
    pub fn step(&mut self, line: &AuditLine) -> Result<(), Break> {
        let expected = self.seq + 1;
        if line.seq != expected {
            return Err(Break::Missing { expected, found: line.seq });
        }
        if line.previous != self.digest {
            return Err(Break::Unlinked(line.seq));
        }
        if digest_of(line) != line.digest {
            return Err(Break::Changed(line.seq));
        }
        self.seq = line.seq;
        self.digest.clone_from(&line.digest);
        Ok(())
    }

    /// That this is its end.
    ///
    /// # Errors
    /// See [`Break`].
    pub fn end(&self, chain: &Chain) -> Result<(), Break> {
        if self.seq < chain.seq {
            return Err(Break::Cut { expected: chain.seq, found: self.seq });
        }
        match self.seq == chain.seq && self.digest == chain.digest {
            true => Ok(()),
            false => Err(Break::OtherEnd),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(seq: u64, previous: &str) -> AuditLine {
        let mut line = AuditLine {
            chain: "tenant:acme".to_owned(),
            seq,
            at_ms: 1_790_000_000_000,
            act: "write.dispatched".to_owned(),
            actor: "ann".to_owned(),
            user: "ann".to_owned(),
            conversation: None,
            run: None,
            call: None,
            tool: Some("save \"it\"".to_owned()),
            subject: None,
            arguments: None,
            outcome: None,
            reason: None,
            count: 1,
            previous: previous.to_owned(),
            digest: String::new(),
        };
        line.digest = digest_of(&line);
        line
    }

    #[test]
    fn the_digest_is_that_of_a_json_list_which_anybody_can_write() {
        let text = r#"["tenant:acme",1,1790000000000,"write.dispatched","ann","ann",null,null,null,"save \"it\"",null,null,null,null,1,""]"#;
        assert_eq!(line(1, "").digest, sha256_hex(text.as_bytes()));
    }

    #[test]
    fn a_walk_finds_the_first_break() {
        let first = line(1, "");
        let second = line(2, &first.digest);
        let chain = Chain { name: first.chain.clone(), seq: 2, digest: second.digest.clone(), waiting: 0 };
        let walk = |lines: &[AuditLine]| {
            let mut walk = Walk::default();
            lines.iter().try_for_each(|line| walk.step(line)).and_then(|()| walk.end(&chain))
        };
        let changed = AuditLine { actor: "bob".to_owned(), ..first.clone() };
        let mut again = AuditLine { actor: "bob".to_owned(), ..second.clone() };
        again.digest = digest_of(&again);
        let (cut, missing) = (Break::Cut { expected: 2, found: 1 }, Break::Missing { expected: 1, found: 2 });
        assert_eq!(walk(&[first.clone(), second.clone()]), Ok(()));
        assert_eq!(walk(&[changed, second.clone()]), Err(Break::Changed(1)));
        assert_eq!(walk(&[first.clone(), line(2, "0")]), Err(Break::Unlinked(2)));
        assert_eq!(walk(&[second]), Err(missing));
        assert_eq!(walk(std::slice::from_ref(&first)), Err(cut));
        assert_eq!(
            walk(&[first, again]),
            Err(Break::OtherEnd),
            "its digest is right, and it is not the one that was kept"
        );
    }
}
