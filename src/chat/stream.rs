//! The events that a provider streams to the loop. A provider's fold makes these from its vendor's events; the turn
//! folds them into a message.

use std::sync::Arc;

use super::cost::Cost;
use super::message::{ModelOrigin, Replay};

/// Names one call while its turn streams: the provider's fold gives each call of a response its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CallSlot(pub u32);

/// One step of a model's answer.
#[derive(Debug, Clone)]
pub enum StreamEvent {
    /// A piece of text for the user.
    Text(String),
    /// A piece of reasoning.
    Thinking(String),
    /// A call's name is known. Comes once per slot, before its input.
    ToolCallStarted {
        /// The call.
        slot: CallSlot,
        /// The vendor's id; `None` where it gives none.
        id: Option<String>,
        /// The tool's name.
        name: String,
    },
    /// A piece of a call's arguments: JSON text, to be joined per slot. Pieces of parallel calls may interleave.
    ToolCallInput {
        /// The call.
        slot: CallSlot,
        /// A piece of JSON text.
        json: String,
    },
    /// Opaque data to send back with the piece it belongs to. It seals that piece: later text begins a new one.
    Replay {
        /// Which piece.
        on: ReplayOn,
        /// The data.
        data: Replay,
    },
    /// The usage so far, where the vendor reports it before the end. It replaces earlier reports, and is no piece of
    /// the answer.
    Used(Usage),
    /// The vendor's terminal marker: always the last event, and a stream without it is an error.
    Finished {
        /// Why the model stopped.
        reason: FinishReason,
        /// Token counts, where the vendor gave any.
        usage: Option<Usage>,
    },
}

/// The piece that replay data belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplayOn {
    /// The newest delta of text alone, also an empty one, where nothing came after it; else a new empty text piece.
    Text,
    /// The newest piece if it is unsealed thinking, else a new empty thinking piece.
    Thinking,
    /// That call.
    ToolCall(CallSlot),
    /// None: the data is a piece of its own.
    Alone,
}

/// Why a model stopped. Whether tools run is decided by [`Self::Stop`] and the presence of calls, never by a vendor's
/// label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FinishReason {
    /// It was done, or wants its tools run.
    Stop,
    /// The token limit cut it off.
    Length,
    /// A safety filter of the vendor ended it.
    ContentFilter,
    /// The model itself declined to go on.
    Refusal,
}

impl FinishReason {
    /// Its name in the trail.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
            Self::ContentFilter => "content_filter",
            Self::Refusal => "refusal",
        }
    }
}

/// Token counts of one turn. Cumulative counters of a vendor: the last value wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Prompt tokens, cached ones included.
    pub input_tokens: u64,
    /// Answer tokens, reasoning included.
    pub output_tokens: u64,
    /// Of the input, those read from a cache.
    pub cached_input_tokens: u64,
    /// Of the output, those spent on reasoning.
    pub reasoning_tokens: u64,
}

/// A thousand million: more tokens than any model call has.
const MOST_TOKENS: u64 = 1_000_000_000;

impl Usage {
    /// The part of it that can be true of one model call: a server may say any number, and sums have to hold them all.
    #[must_use]
    pub fn believable(self) -> Self {
        let Self { input_tokens, output_tokens, cached_input_tokens, reasoning_tokens } = self;
        Self {
            input_tokens: input_tokens.min(MOST_TOKENS),
            output_tokens: output_tokens.min(MOST_TOKENS),
            cached_input_tokens: cached_input_tokens.min(MOST_TOKENS),
            reasoning_tokens: reasoning_tokens.min(MOST_TOKENS),
        }
    }
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
        self.cached_input_tokens = self.cached_input_tokens.saturating_add(other.cached_input_tokens);
        self.reasoning_tokens = self.reasoning_tokens.saturating_add(other.reasoning_tokens);
    }
}

/// Token counts, and where they come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counted {
    /// The counts.
    pub usage: Usage,
    /// Whether the vendor did not tell some of them: an answer broke off before its end.
    pub is_estimate: bool,
}

impl Counted {
    /// As the vendor has reported it.
    pub fn reported(usage: Usage) -> Self {
        Self { usage, is_estimate: false }
    }
}

/// The usage of one model call.
#[derive(Debug, Clone, PartialEq)]
pub struct Spent {
    /// When it ended, in milliseconds since the epoch.
    pub at_ms: i64,
    /// The model that answered.
    pub origin: Arc<ModelOrigin>,
    /// Its tokens: as the vendor reported them, or as they are estimated for an answer that broke off.
    pub usage: Usage,
    /// Its cost, where it has a price.
    pub cost: Option<Cost>,
}
