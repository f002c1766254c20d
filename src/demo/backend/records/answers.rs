//! What was answered to writes with an `Idempotency-Key`.

use std::collections::VecDeque;

use bytes::Bytes;

use super::all::MAX_RECORDS;

/// The newest thousand of them.
#[derive(Debug, Default)]
pub struct Answers(VecDeque<Answer>);

/// An answer, and what it was for.
#[derive(Debug)]
pub struct Answer {
    /// Tenant, user, and the key.
    pub key: (String, String, String),
    /// A digest of the request.
    pub request: Vec<u8>,
    /// The answer's body.
    pub body: Bytes,
}

impl Answers {
    /// What was answered to a write with this key.
    pub fn find(&self, key: &(String, String, String)) -> Option<&Answer> {
        self.0.iter().find(|answer| answer.key == *key)
    }

    /// Keeps an answer, in the place of the oldest one when there are many.
    pub fn keep(&mut self, answer: Answer) {
        if self.0.len() >= MAX_RECORDS {
            self.0.pop_front();
        }
        self.0.push_back(answer);
    }
}
