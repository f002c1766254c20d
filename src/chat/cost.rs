//! What model calls cost.

use std::ops::AddAssign;

/// An amount of money in billionths of a US dollar: what a single token costs is a whole number of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Cost {
    /// Billionths of a US dollar.
    pub nano_usd: u64,
}

impl Cost {
    /// The amount in US dollars.
    pub fn usd(self) -> f64 {
        // Exact up to 9 million dollars.
        self.nano_usd as f64 / 1e9
    }
}

impl AddAssign for Cost {
    fn add_assign(&mut self, other: Self) {
        self.nano_usd = self.nano_usd.saturating_add(other.nano_usd);
    }
}
