//! The request body of `POST /api/chat/stream`. Its mistakes are listed field by field, as clients of this protocol
//! know them: path, text and kind.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::{ChatStream, note};
use crate::bounded::json::{Tree, parse};
use crate::chat::approval::{APPROVE_CALL, Decision, REJECT_CALL};
use crate::chat::ids::ApprovalId;
use crate::chat::input::{RunOptions, Screen};
use crate::chat::screen::ScreenState;
use crate::dialect::given::Ask;
use crate::dialect::{DecodeError, Mistake, json};

/// The longest comment on a decision, in bytes.
const COMMENT_BYTES: usize = 4096;

/// 2^53: beyond, a number with a point is not exact.
const MOST_EXACT: f64 = 9_007_199_254_740_992.0;

/// The text for the model of a message without words or action: some refuse an empty one.
const EMPTY: &str = "(empty message)";

/// A request.
#[derive(Debug, Clone, PartialEq)]
pub struct Read {
    /// The task.
    pub what: What,
    /// Where the user is.
    pub screen: Screen,
    /// The number of the conversation; `None` begins a new one.
    pub number: Option<i64>,
    /// How to run it.
    pub options: RunOptions,
}

/// The task.
#[derive(Debug, Clone, PartialEq)]
pub enum What {
    /// A message is to be answered.
    Answer(Ask),
    /// A call that waits is decided.
    Decide {
        /// The call.
        approval: ApprovalId,
        /// The digest of the call that the user saw; `None` where there was none.
        digest: Option<String>,
        /// The decision.
        decision: Decision,
    },
}

/// The body; unknown keys are ignored, `conversation_history` and `user_role` among them: what was said is what this
/// server has kept, and who somebody is says their token.
#[derive(Deserialize, ToSchema)]
#[schema(as = ChatStreamRequest)]
pub struct Body<'a> {
    #[serde(borrow)]
    #[schema(value_type = String)]
    message: Option<&'a RawValue>,
    /// Where the user is.
    #[serde(borrow)]
    #[schema(value_type = Object, example = json!({"current_page": "catalog"}))]
    context: Option<&'a RawValue>,
    #[serde(borrow)]
    #[schema(value_type = Interaction, example = "text_input")]
    interaction_type: Option<&'a RawValue>,
    #[serde(borrow)]
    #[schema(value_type = Option<Action>)]
    action_metadata: Option<&'a RawValue>,
    /// The chat's number; a new chat without it. Its decimal text is the same.
    #[serde(borrow)]
    #[schema(value_type = Option<i64>)]
    conversation_id: Option<&'a RawValue>,
}

/// What the user did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = ChatStreamInteraction)]
enum Interaction {
    TextInput,
    ValueSelected,
    ActionExecuted,
}

/// `action_metadata`.
#[derive(Deserialize, ToSchema)]
#[schema(as = ChatStreamAction)]
struct Action {
    action_identifier: String,
    #[schema(value_type = Option<Value>)]
    action_data: Option<Tree>,
}

/// A whole number, as pages of different ages write one: `12`, `12.0` or `"12"`.
struct Whole(i64);

impl<'de> Deserialize<'de> for Whole {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Whole(i64),
            Fraction(f64),
            Text(String),
        }
        let whole = match Written::deserialize(deserializer)? {
            Written::Whole(number) => Some(number),
            Written::Fraction(number) => (number.fract() == 0.0 && number.abs() <= MOST_EXACT).then_some(number as i64),
            Written::Text(text) => text.parse().ok(),
        };
        whole.map(Self).ok_or_else(|| D::Error::custom("must be a whole number"))
    }
}

pub(super) fn read(limits: &ChatStream, body: &[u8]) -> Result<Read, DecodeError> {
    let not_json = |reason: String| DecodeError::Mistakes(vec![Mistake::new(["body"], "json_invalid", reason)]);
    let text = json::object(body).map_err(|error| not_json(error.to_string()))?;
    let body: Body<'_> = parse(text).map_err(|error| not_json(error.to_string()))?;
    for (field, raw, max_bytes) in [
        ("context", body.context, limits.max_context_bytes),
        ("action_metadata", body.action_metadata, limits.max_context_bytes),
    ] {
        if raw.is_some_and(|raw| max_bytes != 0 && raw.get().len() > max_bytes) {
            return Err(DecodeError::TooLarge { field, max_bytes });
        }
    }
    let mut wrong = Vec::new();
    let message: Option<String> = required(body.message, "message", ("string_type", "a string"), &mut wrong);
    let state = state(body.context, &mut wrong);
    let kinds = ("enum", "one of: text_input, value_selected, action_executed");
    let interaction: Option<Interaction> = required(body.interaction_type, "interaction_type", kinds, &mut wrong);
    let action: Option<Action> = optional(
        body.action_metadata,
        "action_metadata",
        ("model_type", "an object with action_identifier, a string, and action_data"),
        &mut wrong,
    );
    let number: Option<Whole> =
        optional(body.conversation_id, "conversation_id", ("int_type", "a whole number"), &mut wrong);
    let number = number.map(|Whole(number)| number);
    let (Some(message), Some(state), Some(interaction), true) = (message, state, interaction, wrong.is_empty()) else {
        return Err(DecodeError::Mistakes(wrong));
    };
    if limits.max_message_bytes != 0 && message.len() > limits.max_message_bytes {
        return Err(DecodeError::TooLarge { field: "message", max_bytes: limits.max_message_bytes });
    }
    let what = what(message, interaction, action)?;
    let screen = screen(&state);
    let options = RunOptions { context: Some(state), details: true, ..RunOptions::default() };
    Ok(Read { what, screen, number, options })
}

fn what(message: String, interaction: Interaction, action: Option<Action>) -> Result<What, DecodeError> {
    let Some(Action { action_identifier, action_data }) = action else {
        let note = message.trim().is_empty().then(|| EMPTY.to_owned());
        return Ok(What::Answer(Ask::Message { text: message, note, files: Vec::new() }));
    };
    let action_data = action_data.map(|Tree(data)| data);
    let approve = action_identifier == APPROVE_CALL;
    if interaction == Interaction::ActionExecuted && (approve || action_identifier == REJECT_CALL) {
        return decided(action_data.as_ref(), approve);
    }
    let note = note::action(&action_identifier, action_data.as_ref().filter(|data| !data.is_null()));
    Ok(What::Answer(Ask::Message { text: message, note: Some(note), files: Vec::new() }))
}

/// The call that is decided, the digest that its user saw, and the reason, from `action_data`.
fn decided(data: Option<&Value>, approve: bool) -> Result<What, DecodeError> {
    const AT: [&str; 3] = ["body", "action_metadata", "action_data"];
    let text = |name: &str| data.and_then(|data| data.get(name)).and_then(Value::as_str);
    let refuse = |kind, message: String| Err(DecodeError::Mistakes(vec![Mistake::new(AT, kind, message)]));
    let Some(approval) = text("approval_id").and_then(|id| ApprovalId::parse(id).ok()) else {
        return refuse("value_error", "approval_id must be the id of a call that waits for approval".to_owned());
    };
    let comment = text("comment").map(str::trim).filter(|comment| !comment.is_empty());
    if comment.is_some_and(|comment| comment.len() > COMMENT_BYTES) {
        return refuse("string_too_long", format!("comment is longer than {COMMENT_BYTES} bytes"));
    }
    let decision = Decision { approve, comment: comment.map(str::to_owned) };
    Ok(What::Decide { approval, digest: text("digest").map(str::to_owned), decision })
}

fn screen(state: &ScreenState) -> Screen {
    let [page, tab, subtab] = ["current_page", "active_tab", "active_subtab"].map(|name| state.text(name));
    Screen::Page { page, tab, subtab }
}

/// The screen state, which has to be there.
fn state(raw: Option<&RawValue>, wrong: &mut Vec<Mistake>) -> Option<ScreenState> {
    let Some(raw) = raw else {
        wrong.push(Mistake::new(["body", "context"], "missing", "Field required"));
        return None;
    };
    let state = json::state(raw);
    let refuse =
        |reason| wrong.push(Mistake::new(["body", "context"], "dict_type", format!("Input should be {reason}")));
    state.map_err(refuse).ok()
}

/// The value of a field that has to be there; `expected` is a kind of mistake and what must be there instead.
fn required<'a, T: Deserialize<'a>>(
    raw: Option<&'a RawValue>,
    field: &'static str,
    expected: (&'static str, &str),
    wrong: &mut Vec<Mistake>,
) -> Option<T> {
    if raw.is_none() {
        wrong.push(Mistake::new(["body", field], "missing", "Field required"));
    }
    value(raw?, field, expected, wrong)
}

/// The value of a field that may be left out or `null`.
fn optional<'a, T: Deserialize<'a>>(
    raw: Option<&'a RawValue>,
    field: &'static str,
    expected: (&'static str, &str),
    wrong: &mut Vec<Mistake>,
) -> Option<T> {
    value(raw?, field, expected, wrong)
}

fn value<'a, T: Deserialize<'a>>(
    raw: &'a RawValue,
    field: &'static str,
    (kind, expected): (&'static str, &str),
    wrong: &mut Vec<Mistake>,
) -> Option<T> {
    // A list would pass for an object's fields in their order, and none of the fields is a list.
    let value = Some(raw.get()).filter(|text| !text.starts_with('[')).and_then(|text| parse(text).ok());
    if value.is_none() {
        wrong.push(Mistake::new(["body", field], kind, format!("Input should be {expected}")));
    }
    value
}
