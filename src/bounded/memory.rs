//! One budget for the memory whose size others choose: bodies of requests, JSON that is read, exports. Whoever is about to
//! allocate reserves it first and gives it back by drop; over the budget there is an error and never an allocation.
//!
//! Nothing waits here: a refused request is answered with 503 and Retry-After, or the model reads that there is no
//! memory now.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The purpose of reserved memory: a label of the gauge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The bytes of a request's body.
    Body,
    /// JSON of others while it is read, with what is made of it.
    Json,
    /// Answers that are sent as a whole: exports, long lists.
    Export,
    /// Files that are sent to models.
    File,
}

impl Kind {
    /// All of them, in declaration order.
    const ALL: [Self; 4] = [Self::Body, Self::Json, Self::Export, Self::File];

    /// As the gauge names it.
    fn label(self) -> &'static str {
        match self {
            Self::Body => "body",
            Self::Json => "json",
            Self::Export => "export",
            Self::File => "file",
        }
    }
}

/// The budget of one process. Clones are the same budget.
#[derive(Debug, Clone)]
pub struct Memory(Arc<Budget>);

#[derive(Debug)]
struct Budget {
    most: usize,
    held: AtomicUsize,
    by_kind: [AtomicUsize; Kind::ALL.len()],
}

/// The budget has not so much left now. It may have in a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the server has no memory left for it now")]
pub struct Exhausted;

impl Memory {
    /// A budget of so many bytes (`limits.memory_bytes`); 0 means no limit.
    pub fn new(bytes: usize) -> Self {
        let most = if bytes == 0 { usize::MAX } else { bytes };
        Self(Arc::new(Budget { most, held: AtomicUsize::new(0), by_kind: Default::default() }))
    }

    /// So many bytes, until the reservation is dropped.
    ///
    /// # Errors
    /// [`Exhausted`] over the budget; nothing is reserved then.
    pub fn reserve(&self, kind: Kind, bytes: usize) -> Result<Reservation, Exhausted> {
        let mut reservation = Reservation { of: self.clone(), kind, bytes: 0 };
        reservation.grow(bytes)?;
        Ok(reservation)
    }

    /// The bytes reserved now, by the kinds' labels.
    pub fn reserved(&self) -> impl Iterator<Item = (&'static str, usize)> {
        Kind::ALL.into_iter().zip(&self.0.by_kind).map(|(kind, bytes)| (kind.label(), bytes.load(Ordering::Relaxed)))
    }
}

/// Reserved memory, given back by drop.
#[derive(Debug)]
#[must_use = "what is dropped is not reserved"]
pub struct Reservation {
    of: Memory,
    kind: Kind,
    bytes: usize,
}

impl Reservation {
    /// So many bytes more.
    ///
    /// # Errors
    /// [`Exhausted`] over the budget; earlier reservations stay.
    pub fn grow(&mut self, more: usize) -> Result<(), Exhausted> {
        let budget = &self.of.0;
        let taken = |held: usize| held.checked_add(more).filter(|held| *held <= budget.most);
        budget.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, taken).map_err(|_| Exhausted)?;
        budget.by_kind[self.kind as usize].fetch_add(more, Ordering::Relaxed);
        self.bytes += more;
        Ok(())
    }

    /// Gives back all beyond `bytes`.
    pub fn shrink_to(&mut self, bytes: usize) {
        let less = self.bytes.saturating_sub(bytes);
        let budget = &self.of.0;
        budget.held.fetch_sub(less, Ordering::Relaxed);
        budget.by_kind[self.kind as usize].fetch_sub(less, Ordering::Relaxed);
        self.bytes -= less;
    }

    /// How much it is.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.shrink_to(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reserved(memory: &Memory) -> Vec<(&'static str, usize)> {
        memory.reserved().collect()
    }

    #[test]
    fn what_is_reserved_is_bounded_and_given_back() {
        let memory = Memory::new(100);
        let mut body = memory.reserve(Kind::Body, 40).unwrap();
        let json = memory.clone().reserve(Kind::Json, 50).unwrap();
        assert_eq!(reserved(&memory), [("body", 40), ("json", 50), ("export", 0), ("file", 0)], "by kind");
        assert_eq!(body.grow(11), Err(Exhausted), "one too many");
        assert_eq!(memory.reserve(Kind::Export, 11).map(|more| more.bytes()), Err(Exhausted), "of any kind");
        assert_eq!(memory.reserve(Kind::Export, usize::MAX).map(|more| more.bytes()), Err(Exhausted), "no overflow");
        assert_eq!((body.grow(10), body.bytes()), (Ok(()), 50), "to the last byte");
        body.shrink_to(20);
        drop(json);
        assert_eq!(reserved(&memory), [("body", 20), ("json", 0), ("export", 0), ("file", 0)], "given back");
        drop(body);
        assert!(memory.reserve(Kind::Export, 100).is_ok(), "all of it");
        assert_eq!(reserved(&memory), [("body", 0), ("json", 0), ("export", 0), ("file", 0)], "and back");
        assert!(Memory::new(0).reserve(Kind::Body, usize::MAX).is_ok(), "no limit");
    }
}
