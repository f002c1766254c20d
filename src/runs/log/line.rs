//! The shapes of the lines in which events leave this process. Another version of this program may read them: what is
//! here already stays as it is, and a field that is added has a default.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::suggested::SuggestionsLine;
use crate::chat::ids::ToolCallId;
use crate::chat::observation::Observation;
use crate::chat::operation::Operation;
use crate::chat::state::StateEvent;
use crate::chat::stream::Usage;
use crate::chat::tool::{ToolCall, ToolInput};

/// An event.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Line<'a> {
    Turn(u32),
    #[serde(borrow)]
    Text(Cow<'a, str>),
    #[serde(borrow)]
    Thinking(Cow<'a, str>),
    Call {
        #[serde(borrow)]
        id: Cow<'a, str>,
        #[serde(borrow)]
        name: Cow<'a, str>,
    },
    Result {
        #[serde(borrow)]
        id: Cow<'a, str>,
        #[serde(borrow)]
        name: Cow<'a, str>,
        /// For versions before the fate.
        is_error: bool,
        /// Lines of earlier versions have none.
        #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
        fate: Option<Cow<'a, str>>,
        /// Why it is an error; lines of earlier versions have none.
        #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
        error: Option<Cow<'a, str>>,
        /// Lines of earlier versions have none.
        #[serde(borrow, default)]
        result: Cow<'a, str>,
    },
    TurnEnded {
        #[serde(borrow)]
        provider: Cow<'a, str>,
        #[serde(borrow)]
        model: Cow<'a, str>,
        usage: UsageLine,
        nano_usd: Option<u64>,
    },
    Held {
        #[serde(borrow)]
        id: Cow<'a, str>,
        #[serde(borrow)]
        name: Cow<'a, str>,
        #[serde(borrow)]
        approval: Cow<'a, str>,
    },
    Decided {
        #[serde(borrow, rename = "asked_as")]
        requested_as: Cow<'a, str>,
        #[serde(borrow)]
        name: Cow<'a, str>,
        #[serde(borrow)]
        runs_as: Option<Cow<'a, str>>,
    },
    Ready {
        #[serde(borrow)]
        id: Cow<'a, str>,
        #[serde(borrow)]
        name: Cow<'a, str>,
        input: InputLine<'a>,
    },
    Progress {
        #[serde(borrow)]
        id: Cow<'a, str>,
        #[serde(borrow)]
        name: Cow<'a, str>,
        #[serde(borrow)]
        stage: Cow<'a, str>,
        #[serde(borrow)]
        message: Cow<'a, str>,
        fraction: Option<f64>,
        data: Option<Cow<'a, Value>>,
    },
    Artifact {
        #[serde(borrow)]
        kind: Cow<'a, str>,
        payload: Cow<'a, Value>,
    },
    Payload {
        #[serde(borrow)]
        id: Cow<'a, str>,
        #[serde(borrow)]
        kind: Cow<'a, str>,
        data: Cow<'a, RawValue>,
        #[serde(borrow)]
        summary: Cow<'a, str>,
        by_model: bool,
    },
    Place {
        by_tool: bool,
        is_refocused: bool,
        #[serde(borrow)]
        context_type: Cow<'a, str>,
        #[serde(borrow)]
        entity_id: Option<Cow<'a, str>>,
        #[serde(borrow)]
        entity_name: Option<Cow<'a, str>>,
        /// The object as a text.
        #[serde(borrow)]
        focus: Option<Cow<'a, str>>,
    },
    State(Cow<'a, StateEvent>),
    Operation(Cow<'a, Operation>),
    Directive {
        #[serde(borrow)]
        id: Cow<'a, str>,
        #[serde(borrow)]
        name: Cow<'a, str>,
        #[serde(borrow)]
        status: Cow<'a, str>,
        /// Of what waits for a person.
        #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
        digest: Option<Cow<'a, str>>,
        #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
        role: Option<Cow<'a, str>>,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        not_requester: bool,
    },
    Plan {
        #[serde(borrow)]
        event: Cow<'a, str>,
        value: Value,
    },
    Within {
        origin: Value,
        #[serde(borrow)]
        event: Box<Line<'a>>,
    },
    /// Files that the model is not shown.
    Notice {
        files: Vec<String>,
        #[serde(borrow)]
        message: Cow<'a, str>,
        #[serde(borrow)]
        said: Cow<'a, str>,
    },
    Summarising,
    Summarised,
    RoundEnded,
    LimitReached,
    #[serde(borrow)]
    Suggested(SuggestionsLine<'a>),
    Diagnosed(Cow<'a, Value>),
    Observed(Cow<'a, Observation>),
    Finished(UsageLine),
    AwaitingApproval(UsageLine),
    AwaitingClient {
        usage: UsageLine,
        #[serde(borrow)]
        calls: Vec<CallLine<'a>>,
    },
    Failed {
        #[serde(borrow)]
        code: Cow<'a, str>,
        #[serde(borrow)]
        message: Cow<'a, str>,
        retryable: bool,
    },
    Cancelled,
    Interrupted,
}

/// Tokens.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct UsageLine {
    input_tokens: u64,
    output_tokens: u64,
    cached_input_tokens: u64,
    reasoning_tokens: u64,
}

impl UsageLine {
    pub(super) fn from_usage(usage: Usage) -> Self {
        let Usage { input_tokens, output_tokens, cached_input_tokens, reasoning_tokens } = usage;
        Self { input_tokens, output_tokens, cached_input_tokens, reasoning_tokens }
    }

    pub(super) fn into_usage(self) -> Usage {
        let Self { input_tokens, output_tokens, cached_input_tokens, reasoning_tokens } = self;
        Usage { input_tokens, output_tokens, cached_input_tokens, reasoning_tokens }
    }
}

/// A call that is left to the client.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CallLine<'a> {
    #[serde(borrow)]
    id: Cow<'a, str>,
    #[serde(borrow)]
    name: Cow<'a, str>,
    input: InputLine<'a>,
}

impl<'a> CallLine<'a> {
    pub(super) fn from_call(call: &'a ToolCall) -> Self {
        Self { id: call.id.as_str().into(), name: (&call.name).into(), input: InputLine::from_input(&call.input) }
    }

    pub(super) fn into_call(self) -> ToolCall {
        let Self { id, name, input } = self;
        ToolCall { id: ToolCallId::from_model(id), name: name.into_owned(), input: input.into_input() }
    }
}

/// A call's arguments.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum InputLine<'a> {
    Object(Cow<'a, Map<String, Value>>),
    #[serde(borrow)]
    Invalid(Cow<'a, str>),
}

impl<'a> InputLine<'a> {
    pub(super) fn from_input(input: &'a ToolInput) -> Self {
        match input {
            ToolInput::Object(fields) => Self::Object(Cow::Borrowed(fields)),
            ToolInput::Invalid(text) => Self::Invalid(text.into()),
        }
    }

    pub(super) fn into_input(self) -> ToolInput {
        match self {
            Self::Object(fields) => ToolInput::Object(fields.into_owned()),
            Self::Invalid(text) => ToolInput::Invalid(text.into_owned()),
        }
    }
}
