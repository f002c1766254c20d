//! Questions before an answer: what was said and asked while it is not clear yet what a user wants.

use serde::{Deserialize, Serialize};

/// What was said and asked in a conversation until now.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Clarification {
    /// How often questions were asked.
    pub rounds: u32,
    /// The user's messages, oldest first.
    pub said: Vec<String>,
    /// The questions, oldest first.
    pub asked: Vec<String>,
    /// Whether enough was said: nothing is asked any more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_over: bool,
}

/// Questions that are asked instead of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Questions {
    /// What is said before them.
    pub introduction: String,
    /// At least one.
    pub questions: Vec<String>,
}

impl Questions {
    /// All of it as text, for whoever knows no questions.
    pub fn text(&self) -> String {
        let mut text = self.introduction.clone();
        for question in &self.questions {
            text.push_str("\n\n- ");
            text.push_str(question);
        }
        text
    }
}
