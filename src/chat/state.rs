//! The state of a conversation beside its messages, as its runs tell it: how much of it a model reads, and what its last
//! turn was about. Made by rules; no model is asked.

use serde::{Deserialize, Serialize};

use super::clarification::Questions;
use super::file::{FILES_SENT, FileRef};
use super::message::{AssistantMessage, Message};
use super::place::Place;

/// 60 characters of the user's message say what a turn was about.
const SUMMARY_CHARS: usize = 60;

/// 999 percent is the most that is told.
const MAX_PERCENT: u64 = 999;

/// The tool of a recap that tells of a move.
const MOVED_BY: &str = "context_shift";

/// Something that a run tells of the state of its conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StateEvent {
    /// How much a model reads of it now.
    ContextUsage(ContextUsage),
    /// What the turn before was about, as the run begins with it. Clients know it from that turn's end.
    RecapBefore(Recap),
    /// What the turn was about; the last but its end.
    Recap(Recap),
    /// The same after a tool has moved the conversation; follows the move.
    RecapOfMove(Recap),
    /// Questions instead of an answer; all of its text follows.
    Asked(Questions),
}

impl StateEvent {
    /// Its name in events.
    pub fn name(&self) -> &'static str {
        match self {
            Self::ContextUsage(_) => "context_usage",
            Self::RecapBefore(_) | Self::Recap(_) | Self::RecapOfMove(_) => "recap",
            Self::Asked(_) => "clarification",
        }
    }
}

/// How much of its budget a conversation takes, in estimated tokens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextUsage {
    /// Of what the model reads of it, with the new message.
    pub tokens: u64,
    /// Its budget.
    pub budget: u64,
    /// From so many percent on it is nearly full.
    pub near_percent: u64,
    /// The summary that stands for its older part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<SummaryFigures>,
}

/// How full a budget is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fullness {
    /// There is room.
    Ok,
    /// There is little.
    NearLimit,
    /// There is none.
    OverBudget,
}

impl Fullness {
    /// Its name in events.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::NearLimit => "near_limit",
            Self::OverBudget => "over_budget",
        }
    }
}

impl ContextUsage {
    /// The share of the budget in percent, at most 999.
    pub fn percent(&self) -> u64 {
        let (tokens, budget) = (u128::from(self.tokens), u128::from(self.budget.max(1)));
        let percent = (100 * tokens + budget / 2) / budget;
        u64::try_from(percent).unwrap_or(MAX_PERCENT).min(MAX_PERCENT)
    }

    /// What is left of the budget.
    pub fn remaining(&self) -> u64 {
        self.budget.saturating_sub(self.tokens)
    }

    /// How full the budget is.
    pub fn fullness(&self) -> Fullness {
        match self.percent() {
            _ if self.tokens > self.budget => Fullness::OverBudget,
            percent if percent >= self.near_percent => Fullness::NearLimit,
            _ => Fullness::Ok,
        }
    }
}

/// The figures of a summary, in estimated tokens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SummaryFigures {
    /// Its id, unique in its conversation.
    pub id: String,
    /// When it was made, in milliseconds since the Unix epoch.
    pub at_ms: i64,
    /// Of what it stands for.
    pub original_tokens: u64,
    /// Of itself.
    pub tokens: u64,
}

/// The estimated tokens of a text: a token for four characters.
pub fn tokens_of_text(text: &str) -> u64 {
    u64::try_from(text.chars().count().div_ceil(4)).unwrap_or(u64::MAX)
}

/// The estimated tokens of what is said in messages; each text counts by itself, and so does each of the newest files.
pub fn tokens_of(messages: &[Message]) -> u64 {
    let of_message = |message: &Message| match message {
        Message::User(user) => tokens_of_text(&user.model_text()),
        Message::Assistant(answer) => of_answer(answer),
        Message::ToolResults(results) => results.iter().map(|result| tokens_of_text(&result.content)).sum(),
    };
    let files =
        messages.iter().rev().flat_map(|message| message.files().rev()).filter(|file| file.is_sent()).take(FILES_SENT);
    messages.iter().map(of_message).sum::<u64>() + files.map(FileRef::tokens).sum::<u64>()
}

fn of_answer(answer: &AssistantMessage) -> u64 {
    let chars: usize = answer.texts().map(|text| text.chars().count()).sum();
    u64::try_from(chars.div_ceil(4)).unwrap_or(u64::MAX)
}

/// What a turn was about. Clients get it and may send it back: it is data then, like all that they say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recap {
    /// The beginning of the user's message, or what was done.
    pub summary: String,
    /// The kind of screen.
    pub context_type: String,
    /// The things that results told of.
    pub entities: Vec<Mentioned>,
    /// The tools that were called, each once, in order.
    pub tools: Vec<String>,
    /// When, in milliseconds since the Unix epoch.
    pub at_ms: i64,
    /// Whether its answer were questions.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_asking: bool,
}

/// The things of one kind that results told of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mentioned {
    /// Their kind.
    pub kind: String,
    /// Whether only the first one counts.
    pub is_one: bool,
    /// Their ids.
    pub ids: Vec<String>,
}

impl Recap {
    /// That of a turn which answered `question`.
    pub fn of_turn(
        question: &str,
        context_type: &str,
        entities: Vec<Mentioned>,
        tools: Vec<String>,
        at_ms: i64,
    ) -> Self {
        let beginning: String = question.chars().take(SUMMARY_CHARS).collect();
        let summary = beginning.trim().to_owned();
        Self { summary, context_type: context_type.to_owned(), entities, tools, at_ms, is_asking: false }
    }

    /// Whether it tells of a move.
    pub fn is_of_move(&self) -> bool {
        self.tools == [MOVED_BY]
    }

    /// That of a move to `place`.
    pub fn of_move(place: &Place, at_ms: i64) -> Self {
        let entities = place.entity.iter().map(|entity| Mentioned {
            kind: place.context_type.clone(),
            is_one: true,
            ids: vec![entity.id.clone()],
        });
        Self {
            summary: place.arrival(),
            context_type: place.context_type.clone(),
            entities: entities.collect(),
            tools: vec![MOVED_BY.to_owned()],
            at_ms,
            is_asking: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::chat::fate::CallFate;
    use crate::chat::file::FileKind;
    use crate::chat::ids::{FileId, ToolCallId};
    use crate::chat::message::{AssistantPart, ModelOrigin, UserMessage};
    use crate::chat::tool::ToolResult;

    #[test]
    fn a_token_is_four_characters_of_each_text() {
        let text = |text: &str| AssistantPart::Text { text: text.to_owned(), replay: None };
        let origin = Arc::new(ModelOrigin { provider: "p".to_owned(), model: "m".to_owned() });
        let result = |content: &str| ToolResult {
            id: ToolCallId::from_model("c"),
            name: "t".to_owned(),
            content: content.to_owned(),
            fate: CallFate::Done,
            files: Vec::new(),
        };
        let messages = [
            Message::User(UserMessage::new("Größe")),
            Message::Assistant(AssistantMessage { origin, parts: vec![text("a"), text("bc"), text("de")] }),
            Message::ToolResults(vec![result("[1]"), result("")]),
        ];
        assert_eq!(tokens_of(&messages), 2 + 2 + 1);
    }

    #[test]
    fn each_file_that_is_sent_counts_by_its_kind() {
        let file = |kind, bytes| FileRef { id: FileId::fresh(), kind, name: "a".to_owned(), bytes, side: 0 };
        let with = |files| Message::User(UserMessage { files, ..UserMessage::new("Look") });
        let messages = [with(vec![file(FileKind::Png, 5_000_000), file(FileKind::Pdf, 150_000)])];
        assert_eq!(tokens_of(&messages), 1 + 1600 + 6000);
        let many = [with((0..50).map(|_| file(FileKind::Png, 9)).collect())];
        assert_eq!(tokens_of(&many), 1 + 20 * 1600, "the newest twenty are sent");
    }

    #[test]
    fn a_budget_is_near_its_limit_before_it_is_over() {
        let rows = [
            (0, 0, 2500, Fullness::Ok),
            (2112, 84, 388, Fullness::Ok),
            (2113, 85, 387, Fullness::NearLimit),
            (2500, 100, 0, Fullness::NearLimit),
            (2501, 100, 0, Fullness::OverBudget),
            (u64::MAX, 999, 0, Fullness::OverBudget),
        ];
        for (tokens, percent, remaining, fullness) in rows {
            let usage = ContextUsage { tokens, budget: 2500, near_percent: 85, summary: None };
            let found = (usage.percent(), usage.remaining(), usage.fullness());
            assert_eq!(found, (percent, remaining, fullness), "{tokens}");
        }
    }

    #[test]
    fn a_recap_has_the_beginning_of_the_question() {
        let long = "word ".repeat(20);
        let recap = Recap::of_turn(&long, "global", Vec::new(), Vec::new(), 7);
        assert_eq!(recap.summary, "word ".repeat(12).trim());
    }
}
