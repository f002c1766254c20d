//! What a run leaves of the state of its conversation: what it was about, and how much its model has read.

use serde_json::Value;

use super::messages::Messages;
use crate::agent::offer::profile::{ContextBudget, Profile};
use crate::agent::ports::store::{Left, RunStart, StateLeft};
use crate::agent::ports::summaries::Past;
use crate::agent::recap::Mentions;
use crate::bounded::json;
use crate::chat::clarification::Clarification;
use crate::chat::fate::CallFate;
use crate::chat::file::FileRef;
use crate::chat::message::Message;
use crate::chat::place::Place;
use crate::chat::state::{ContextUsage, Recap, tokens_of, tokens_of_text};

/// The same while the run goes on.
pub(super) struct About {
    context_type: String,
    /// What results told of; `None` where the profile wants no recap.
    mentions: Option<Mentions>,
    budget: Option<ContextBudget>,
    /// The estimated tokens of the message.
    asked: u64,
    usage: Option<ContextUsage>,
    recap: Option<Recap>,
    /// What was said and asked before this run.
    clarification: Option<Clarification>,
    /// The same as this run leaves it.
    clarified: Option<Clarification>,
    /// Whether its answer are questions.
    is_asking: bool,
    /// Whether it is at a place where users are asked first.
    may_ask: bool,
}

impl About {
    /// That of a run that begins so at the place of `profile`.
    pub(super) fn new(start: &RunStart, profile: &Profile) -> Self {
        let files = start.message.files.iter().map(FileRef::tokens).sum::<u64>();
        let asked = tokens_of_text(&start.message.model_text()) + files;
        let usage = profile.context.map(|budget| usage(budget, &start.past, asked));
        let mut mentions = profile.recap.clone().map(Mentions::of_kinds);
        let answered = start.answered.iter().flat_map(|(_, results)| results);
        for result in answered.filter(|result| result.fate == CallFate::Done) {
            if let (Some(mentions), Some(value)) = (&mut mentions, read(&result.content)) {
                mentions.note(&value);
            }
        }
        Self {
            context_type: profile.context_type.clone(),
            mentions,
            budget: profile.context,
            asked,
            usage,
            recap: None,
            clarification: start.clarification.clone(),
            clarified: None,
            is_asking: false,
            may_ask: profile.clarify.is_some(),
        }
    }

    /// The run goes on at the place of `profile`.
    pub(super) fn enter(&mut self, profile: &Profile) {
        self.context_type.clone_from(&profile.context_type);
        self.may_ask = profile.clarify.is_some();
    }

    /// It reads another past from now on.
    pub(super) fn remember(&mut self, past: &Past) {
        self.usage = self.budget.map(|budget| usage(budget, past, self.asked));
    }

    /// How much its model has read as it began, where that has a budget.
    pub(super) fn usage(&self) -> Option<&ContextUsage> {
        self.usage.as_ref()
    }

    /// How many of the newest messages stay, where the conversation has grown beyond its budget.
    pub(super) fn keep(&self, messages: &Messages) -> Option<usize> {
        let (budget, usage) = (self.budget?, self.usage.as_ref()?);
        (usage.tokens + tokens_of(messages.answers()) > budget.tokens).then_some(budget.keep_messages)
    }

    /// Whether it wants to know what calls have said.
    pub(super) fn wants_results(&self) -> bool {
        self.mentions.is_some()
    }

    /// Looks at what a call has said.
    pub(super) fn note(&mut self, result: &Value) {
        if let Some(mentions) = &mut self.mentions {
            mentions.note(result);
        }
    }

    /// What results told of.
    pub(super) fn take_mentions(&mut self) -> Option<Mentions> {
        self.mentions.take().filter(|mentions| !mentions.is_empty())
    }

    /// The recap of a move to `place`, where `profile` goes on.
    pub(super) fn move_to(&mut self, place: &Place, profile: Option<&Profile>, now_ms: i64) -> Option<Recap> {
        let recap = self.mentions.is_some().then(|| Recap::of_move(place, now_ms));
        if let Some(profile) = profile {
            self.enter(profile);
        }
        recap
    }

    /// Adds what a helper has found.
    pub(super) fn join(&mut self, found: Mentions) {
        if let Some(mentions) = &mut self.mentions {
            mentions.join(found);
        }
    }

    /// What the run was about, now that it has answered.
    pub(super) fn close(&mut self, messages: &Messages, now_ms: i64) -> Option<&Recap> {
        let mentions = self.mentions.take()?;
        let mut tools: Vec<String> = Vec::new();
        let answers = messages.answers().iter().filter_map(|message| match message {
            Message::Assistant(answer) => Some(answer),
            Message::User(_) | Message::ToolResults(_) => None,
        });
        for call in answers.flat_map(|answer| answer.calls()) {
            if tools.iter().all(|known| *known != call.name) {
                tools.push(call.name.clone());
            }
        }
        let asked = messages.asked();
        let recap = Recap::of_turn(&asked, &self.context_type, mentions.found(), tools, now_ms);
        let recap = Recap { is_asking: self.is_asking, ..recap };
        Some(self.recap.insert(recap))
    }

    /// What was said and asked before this run.
    pub(super) fn clarification(&self) -> Option<&Clarification> {
        self.clarification.as_ref()
    }

    /// What was said and asked with this run.
    pub(super) fn know(&mut self, clarified: Clarification) {
        self.clarified = Some(clarified);
    }

    /// It asks its user instead of an answer.
    pub(super) fn ask(&mut self, so_far: Clarification) {
        self.clarified = Some(so_far);
        self.is_asking = true;
    }

    /// It has not answered after all.
    pub(super) fn reopen(&mut self) {
        self.recap = None;
        self.clarified = None;
        self.is_asking = false;
    }

    /// What the store keeps of it.
    pub(super) fn left(&self) -> StateLeft<'_> {
        let clarification = match (&self.clarified, &self.clarification) {
            // The user has left the place where they were asked.
            (Some(_), _) | (None, Some(_)) if !self.may_ask => Left::Nothing,
            (Some(clarified), _) => Left::Is(clarified),
            (None, Some(_) | None) => Left::Same,
        };
        StateLeft { recap: self.recap.as_ref(), context_usage: self.usage.as_ref(), names: &[], clarification }
    }
}

/// How much of `budget` it takes to read `past` and a message of so many tokens.
fn usage(budget: ContextBudget, past: &Past, asked: u64) -> ContextUsage {
    let summary = past.summary.as_ref();
    let read = summary.map_or(0, |summary| tokens_of_text(&summary.text)) + tokens_of(&past.history);
    ContextUsage {
        tokens: read + asked,
        budget: budget.tokens,
        near_percent: budget.near_percent,
        summary: summary.and_then(|summary| summary.figures.clone()),
    }
}

/// 256 KiB of a result: a larger one is not searched here, where others wait.
const RESULT_BYTES: usize = 256 << 10;

/// What a call has said, where it is JSON.
pub(super) fn read(content: &str) -> Option<Value> {
    (content.len() <= RESULT_BYTES).then(|| json::value(content).ok()).flatten()
}
