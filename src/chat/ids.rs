//! Identifiers, each its own type, made by parsing. None of them is a credential: every lookup is scoped by
//! [`super::caller::Owner`].

use std::borrow::Cow;
use std::fmt;

use uuid::Uuid;

use super::digest::sha256_hex;

/// Why a text is not an identifier; safe to show to whoever sent it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidId(&'static str);

/// A conversation, named by the client or by us: 1 to 128 of `A-Z a-z 0-9 . _ : -`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ConversationId(String);

impl ConversationId {
    /// The id in `text`.
    ///
    /// # Errors
    /// When `text` is empty, longer than 128 bytes or has another character.
    pub fn parse(text: &str) -> Result<Self, InvalidId> {
        let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b':' | b'-');
        if text.is_empty() || text.len() > 128 || !text.bytes().all(allowed) {
            return Err(InvalidId("must be 1 to 128 characters of A-Z a-z 0-9 . _ : -"));
        }
        Ok(Self(text.to_owned()))
    }

    /// A fresh id for a client that named none.
    pub fn fresh() -> Self {
        Self(Uuid::now_v7().to_string())
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ConversationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

macro_rules! uuid_id {
    ($(#[$doc:meta])* $name:ident, $fresh:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub struct $name(Uuid);

        impl $name {
            /// A new id.
            pub fn fresh() -> Self {
                Self($fresh)
            }

            /// The id in `text`, a UUID.
            ///
            /// # Errors
            /// When `text` is not a UUID.
            pub fn parse(text: &str) -> Result<Self, InvalidId> {
                Uuid::try_parse(text).map(Self).map_err(|_| InvalidId("must be a UUID"))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.hyphenated().fmt(f)
            }
        }
    };
}

uuid_id!(
    /// One run: one POST. Sortable by time.
    RunId, Uuid::now_v7());

impl RunId {
    /// When it was made, in milliseconds since the Unix epoch: the first 48 bits of it (RFC 9562, section 5.7).
    pub fn made_ms(self) -> i64 {
        i64::try_from(self.0.as_u128() >> 80).unwrap_or_default()
    }
}

uuid_id!(
    /// A preview that waits for its user's decision.
    PreviewId, Uuid::now_v7());
uuid_id!(
    /// A call that waits for an approval.
    ApprovalId, Uuid::now_v7());
uuid_id!(
    /// A line of the audit record.
    AuditId, Uuid::now_v7());
uuid_id!(
    /// A plan of a conversation.
    PlanId, Uuid::now_v7());
uuid_id!(
    /// The work of one sub-agent.
    ExecutionId, Uuid::now_v7());
uuid_id!(
    /// A directive. Sortable by time.
    DirectiveId, Uuid::now_v7());
uuid_id!(
    /// A signal. Sortable by time.
    SignalId, Uuid::now_v7());
uuid_id!(
    /// A delivery of a signal to a subscriber.
    DeliveryId, Uuid::now_v7());
uuid_id!(
    /// A file of a user's.
    FileId, Uuid::new_v4());
uuid_id!(
    /// A draft that is being built over several messages.
    DraftId, Uuid::new_v4());

/// A message of a conversation: the run that brought it and its number there, written `<run>.<number>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MessageId {
    /// The run.
    pub run: RunId,
    /// Its number in the run; 0 is the user's message.
    pub seq: u32,
}

impl MessageId {
    /// The id in `text`.
    ///
    /// # Errors
    /// When `text` is not a UUID, a dot and a number.
    pub fn parse(text: &str) -> Result<Self, InvalidId> {
        let wrong = || InvalidId("must be the id of a message");
        let (run, seq) = text.split_once('.').ok_or_else(wrong)?;
        if seq.len() > 1 && seq.starts_with('0') || !seq.bytes().all(|b| b.is_ascii_digit()) {
            return Err(wrong());
        }
        Ok(Self { run: RunId::parse(run).map_err(|_| wrong())?, seq: seq.parse().map_err(|_| wrong())? })
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.run, self.seq)
    }
}

/// A payload of a conversation: 8 hex digits.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PayloadId(String);

impl PayloadId {
    /// The id in `text`.
    ///
    /// # Errors
    /// When `text` is not 8 lower-case hex digits.
    pub fn parse(text: &str) -> Result<Self, InvalidId> {
        let is_hex = |b: u8| b.is_ascii_digit() || matches!(b, b'a'..=b'f');
        if text.len() != 8 || !text.bytes().all(is_hex) {
            return Err(InvalidId("must be 8 hex digits"));
        }
        Ok(Self(text.to_owned()))
    }

    /// A fresh id.
    pub fn fresh() -> Self {
        let mut id = Uuid::new_v4().simple().to_string();
        id.truncate(8);
        Self(id)
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for PayloadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A tool call's id within its turn: the model's own, or one of ours where the vendor sends none.
///
/// Adapters ask [`Self::is_minted`], since some vendors refuse an id that they did not give.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ToolCallId {
    text: String,
    minted: bool,
}

/// What stands behind an id that a model gave again, in the alphabet that every vendor allows.
const AGAIN: &str = "_again_";

/// 12 bytes: as much of an id as clients give back that keep 40 characters of one, beside its prefix and a conversation.
const SHORT_BYTES: usize = 12;

/// 22 bytes: the id is no longer than a minted one then. Models that count their calls give short ones.
const MAX_GIVEN_BYTES: usize = 22;

impl ToolCallId {
    /// The id the model gave.
    pub fn from_model(text: impl Into<String>) -> Self {
        Self { text: text.into(), minted: false }
    }

    /// An id of ours, kept from an earlier turn.
    pub fn from_minted(text: impl Into<String>) -> Self {
        Self { text: text.into(), minted: true }
    }

    /// A fresh id of ours: `call_` and 32 hex digits, which every vendor's alphabet allows.
    pub fn mint() -> Self {
        Self::from_minted(format!("call_{}", Uuid::new_v4().simple()))
    }

    /// The id of the call that is made once that approval lets it through: by it the two are known to be one. See
    /// [`Self::later`].
    pub fn of_approval(ApprovalId(id): ApprovalId) -> Self {
        Self::from_minted(format!("call_{}", id.simple()))
    }

    /// The id of the `nth` call of that approval, which was let through so often; from 1.
    pub fn later(&self, nth: u32) -> Self {
        match nth {
            0 | 1 => self.clone(),
            _ => Self { text: format!("{}_{nth}", self.text), minted: self.minted },
        }
    }

    /// Whether it is that of a call of the approval with this id, the first one or a later.
    pub fn is_of_approval(text: &str, approval: ApprovalId) -> bool {
        text.starts_with(Self::of_approval(approval).as_str())
    }

    /// A fresh id of ours for a call to which the model has given the id of another one. Where that is short it begins so,
    /// so that it is known by [`Self::given`].
    pub fn again(given: &str) -> Self {
        if !is_plain(given) || given.is_empty() || given.len() > MAX_GIVEN_BYTES || given.contains(AGAIN) {
            return Self::mint();
        }
        let [a, b, c, d, ..] = Uuid::new_v4().into_bytes();
        Self::from_minted(format!("{given}{AGAIN}{:08x}", u32::from_be_bytes([a, b, c, d])))
    }

    /// At most 12 characters that tell it from the others of its turn: itself, or the beginning of its digest.
    pub fn short(&self) -> Cow<'_, str> {
        match self.text.len() <= SHORT_BYTES && is_plain(&self.text) {
            true => Cow::Borrowed(&self.text),
            false => {
                let mut digest = sha256_hex(self.text.as_bytes());
                digest.truncate(SHORT_BYTES);
                Cow::Owned(digest)
            }
        }
    }

    /// The id as the model gave it, which other calls may have too.
    pub fn given(&self) -> &str {
        let given = self.text.split_once(AGAIN).filter(|_| self.minted);
        given.map_or(&self.text, |(given, _)| given)
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether the id is ours, not the model's.
    pub fn is_minted(&self) -> bool {
        self.minted
    }
}

/// Whether all of it is in the alphabet that every vendor allows.
fn is_plain(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'))
}

impl fmt::Display for ToolCallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
