//! What a user thinks of an answer.

/// Good or bad.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Score {
    /// Thumbs up.
    Good,
    /// Thumbs down.
    Bad,
}

impl Score {
    /// As a number: 1 or -1.
    pub fn number(self) -> i64 {
        match self {
            Self::Good => 1,
            Self::Bad => -1,
        }
    }

    /// The score of a number; `None` where it is no score.
    pub fn of_number(number: i64) -> Option<Self> {
        [Self::Good, Self::Bad].into_iter().find(|score| score.number() == number)
    }

    /// Its name, as metrics and texts say it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Bad => "bad",
        }
    }
}

/// Feedback on the answer of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Feedback {
    /// Good or bad.
    pub score: Score,
    /// Why, in the user's words.
    pub comment: Option<String>,
    /// Why, in a front end's words.
    pub tags: Vec<String>,
}
