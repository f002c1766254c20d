//! The mistakes of a plan: all of them at once, so that a model can mend them all.

use std::fmt;

/// 20 mistakes are named; a model that has made more begins anew.
const NAMED: usize = 20;

/// The mistakes of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Mistakes {
    named: Vec<String>,
    more: usize,
}

impl Mistakes {
    /// One mistake.
    pub fn one(mistake: impl fmt::Display) -> Self {
        let mut mistakes = Self::default();
        mistakes.note(mistake);
        mistakes
    }

    /// Notes one.
    pub fn note(&mut self, mistake: impl fmt::Display) {
        match self.named.len() < NAMED {
            true => self.named.push(mistake.to_string()),
            false => self.more += 1,
        }
    }

    /// What `checked` is, where there are none; else these and those of it.
    ///
    /// # Errors
    /// Where there are some.
    pub fn and<T>(mut self, checked: Result<T, Self>) -> Result<T, Self> {
        let good = checked.map_err(|Self { named, more }| {
            named.into_iter().for_each(|mistake| self.note(mistake));
            self.more += more;
        });
        match good {
            Ok(good) => self.or(good),
            Err(()) => Err(self),
        }
    }

    /// `good`, where there are none.
    ///
    /// # Errors
    /// Where there are some.
    pub fn or<T>(self, good: T) -> Result<T, Self> {
        if self.named.is_empty() { Ok(good) } else { Err(self) }
    }
}

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.named.join("; "))?;
        if self.more > 0 {
            write!(f, "; and {} more mistakes", self.more)?;
        }
        Ok(())
    }
}
