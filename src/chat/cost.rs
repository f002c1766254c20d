//! The cost of model calls.

use std::ops::AddAssign;

/// An amount of money in billionths of a US dollar: the price of a single token is a whole number of them.
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

/// The cost of several calls together: of those of a run, for one.
#[derive(Debug, Clone, Copy, Default)]
pub enum Sum {
    /// There was none.
    #[default]
    Nothing,
    /// This much.
    Known(Cost),
    /// It is unknown: one of them has no price.
    Unknown,
}

impl Sum {
    /// Adds the cost of a turn, where it is known.
    pub fn add(&mut self, cost: Option<Cost>) {
        *self = match (*self, cost) {
            (Self::Nothing, Some(cost)) => Self::Known(cost),
            (Self::Known(mut sum), Some(cost)) => {
                sum += cost;
                Self::Known(sum)
            }
            (Self::Unknown, _) | (_, None) => Self::Unknown,
        };
    }

    /// Adds another sum.
    pub fn join(&mut self, other: Self) {
        match other {
            Self::Nothing => {}
            Self::Known(cost) => self.add(Some(cost)),
            Self::Unknown => *self = Self::Unknown,
        }
    }

    /// The sum, where all of it is known.
    pub fn known(self) -> Option<Cost> {
        match self {
            Self::Known(sum) => Some(sum),
            Self::Nothing | Self::Unknown => None,
        }
    }
}
