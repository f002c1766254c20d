//! The conversations' port: what users see of their conversations.

use async_trait::async_trait;
use serde_json::value::RawValue;

use super::approvals::ApprovalView;
use super::feedback::KeptFeedback;
use super::quotas::{OverQuota, Quotas};
use super::store_error::StoreError;
use super::usage::Used;
use crate::bounded::memory::{Exhausted, Reservation};
use crate::chat::approval::Standing;
use crate::chat::artifact::{CallArtifact, HelperOf};
use crate::chat::caller::Owner;
use crate::chat::fate::CallFate;
use crate::chat::file::FileRef;
use crate::chat::ids::{ConversationId, MessageId, PayloadId, RunId};
use crate::chat::notice::Notice;
use crate::chat::place::Place;
use crate::chat::run::RunRecord;

/// Reads and changes conversations as their owners see them.
#[async_trait]
pub trait ConversationStore: Send + Sync {
    /// The owner's conversations of that kind, pinned ones first, then newest change first, from `cursor` on.
    ///
    /// # Errors
    /// When they could not be read.
    async fn conversations(
        &self,
        owner: &Owner,
        listed: Listed,
        page: Page,
    ) -> Result<Paged<ConversationHead>, PageError>;

    /// The conversation with a part of the messages of a branch: the newest ones before `page.cursor`, oldest
    /// first. A run is there whole or not at all, and one always is, so there may be more of them than requested.
    /// `held` grows to what they take before they are read.
    ///
    /// # Errors
    /// When it could not be read, or there is no memory for it.
    async fn conversation(
        &self,
        owner: &Owner,
        branch: BranchRef<'_>,
        page: Page,
        held: &mut Reservation,
    ) -> Result<Option<ConversationView>, PageError>;

    /// Deletes the conversation with its runs, messages, summaries, trail, drafts, previews, payloads, approvals, feedback,
    /// words in the index, and number. All its runs, so that
    /// what else is kept of them can be forgotten; owners of live ones find them gone. `None` when there was no such
    /// conversation.
    ///
    /// # Errors
    /// When it could not be committed.
    async fn delete(&self, owner: &Owner, id: &ConversationId) -> Result<Option<Vec<RunId>>, StoreError>;

    /// The conversation's trail, oldest first, from `cursor` on; `None` when there is no such conversation.
    ///
    /// # Errors
    /// When it could not be read.
    async fn trail(
        &self,
        owner: &Owner,
        id: &ConversationId,
        page: Page,
    ) -> Result<Option<Paged<TrailItem>>, PageError>;
}

/// Knows the branches of a conversation.
#[async_trait]
pub trait BranchStore: Send + Sync {
    /// How the runs of the conversation go on from each other, oldest first: its newest 2000 at most.
    ///
    /// # Errors
    /// When it could not be read.
    async fn tree(&self, owner: &Owner, id: &ConversationId) -> Result<Vec<RunNode>, StoreError>;

    /// The newest message of the user's in it to which their client gave the id `name`; `None` where none has it.
    ///
    /// # Errors
    /// When it could not be read.
    async fn message_known_as(
        &self,
        owner: &Owner,
        id: &ConversationId,
        name: &str,
    ) -> Result<Option<MessageId>, StoreError>;
}

/// Gives away all of a conversation.
#[async_trait]
pub trait ExportStore: Send + Sync {
    /// Counts an export of the owner's. Days are the database's own.
    ///
    /// # Errors
    /// When as many were made as may, or it could not be committed.
    async fn take_export(&self, owner: &Owner, quotas: &Quotas) -> Result<(), ExportError>;

    /// A part of everything of the conversation (all branches, runs and the trail), from `at` on; `None` when there is
    /// no such conversation, or no longer. Each part is read by itself, so that a slow reader blocks no writer; what
    /// began after the export did is in no part. `held` grows to what the part takes before it is read.
    ///
    /// # Errors
    /// When it could not be read, or there is no memory for it.
    async fn export(
        &self,
        owner: &Owner,
        id: &ConversationId,
        at: ExportAt,
        held: &mut Reservation,
    ) -> Result<Option<ExportPart>, PageError>;

    /// A part of what a user sees of the conversation, in the order of its runs, those of all branches; `None` when there
    /// is no such conversation, or no longer. The same holds of it as of [`Self::export`].
    ///
    /// # Errors
    /// When it could not be read, or there is no memory for it.
    async fn transcript(
        &self,
        owner: &Owner,
        id: &ConversationId,
        at: Option<TranscriptAt>,
        held: &mut Reservation,
    ) -> Result<Option<TranscriptPart>, PageError>;
}

/// Which conversations of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Listed {
    /// Those that are archived, or those that are not.
    pub archived: bool,
    /// Of those, the pinned ones, or those that are not; `None` is both.
    pub pinned: Option<bool>,
}

/// Where a transcript goes on: behind a run's position, up to another one's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TranscriptAt {
    /// Behind this one.
    pub run: i64,
    /// Up to this one.
    pub until: i64,
}

/// A part of a transcript.
#[derive(Debug, Clone)]
pub struct TranscriptPart {
    /// The conversation as lists show it.
    pub head: ConversationHead,
    /// Its runs, in order.
    pub runs: Vec<RunTranscript>,
    /// Where the next part begins; `None` when there is none.
    pub next: Option<TranscriptAt>,
}

/// What a user sees of a run.
#[derive(Debug, Clone)]
pub struct RunTranscript {
    /// The run.
    pub run: RunRecord,
    /// Whether it goes on from the run before it; else another version of the conversation begins with it.
    pub goes_on: bool,
    /// Its messages.
    pub messages: Vec<MessageView>,
    /// What its user thinks of it.
    pub feedback: Option<KeptFeedback>,
}

/// Why an export may not be made.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// As many were made as may be on a day.
    #[error(transparent)]
    OverQuota(#[from] OverQuota),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Which part of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// At most so many.
    pub limit: u32,
    /// Where the part before ended, as in [`Paged::next`]; `None` begins.
    pub cursor: Option<String>,
}

/// Why a part of a list could not be had.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    /// The cursor is none of this list's.
    #[error("the cursor is not one that this list gave")]
    BadCursor,
    /// There is no memory for it now.
    #[error(transparent)]
    Exhausted(#[from] Exhausted),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A part of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paged<T> {
    /// The items.
    pub items: Vec<T>,
    /// Where the next part begins; `None` when there is none.
    pub next: Option<String>,
}

/// A conversation in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConversationHead {
    /// Its id.
    pub id: ConversationId,
    /// The title it was given, or the beginning of its first message.
    pub title: String,
    /// The `context_type` of its place; without one, of its newest run.
    pub context_type: String,
    /// When it began, in milliseconds since the Unix epoch.
    pub created_at_ms: i64,
    /// When its newest run began, or it was renamed.
    pub updated_at_ms: i64,
    /// Messages that a user sees on its newest branch.
    pub message_count: u64,
    /// Where it is; not every one has a place.
    pub place: Option<Place>,
    /// Whether lists have it first.
    pub pinned: bool,
    /// Whether it is only in the list of those.
    pub archived: bool,
}

/// A branch of a conversation.
#[derive(Debug, Clone, Copy)]
pub struct BranchRef<'a> {
    /// The conversation.
    pub conversation: &'a ConversationId,
    /// The run that it ends with; `None` for the newest one.
    pub tip: Option<RunId>,
}

impl<'a> BranchRef<'a> {
    /// The newest branch of a conversation.
    pub fn newest(conversation: &'a ConversationId) -> Self {
        Self { conversation, tip: None }
    }
}

/// A run in the tree of its conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunNode {
    /// The run.
    pub run: RunId,
    /// The run that it goes on from; `None` at the beginning.
    pub parent: Option<RunId>,
    /// The number of that run's message behind which it begins; `None` behind all of them.
    pub message: Option<i64>,
    /// Where it begins with a message of the user: what tells that from others. Of a run that has the place of no other
    /// it says nothing.
    pub asked: Option<String>,
}

/// A conversation with its messages.
#[derive(Debug, Clone, PartialEq)]
pub struct ConversationView {
    /// Its head.
    pub head: ConversationHead,
    /// Of the branch, oldest first.
    pub messages: Vec<MessageView>,
    /// The runs of these messages, and those that have none, oldest first.
    pub runs: Vec<RunRecord>,
    /// Where the part with the messages before these begins; `None` when there are none.
    pub earlier: Option<String>,
    /// What its user thinks of the answers among them, in the order of their runs.
    pub feedback: Vec<KeptFeedback>,
    /// What its runs have used, those of all branches.
    pub used: Used,
}

/// A message as a user sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct MessageView {
    /// Its id.
    pub id: MessageId,
    /// Its author's role.
    pub role: Role,
    /// The words; may be empty where the assistant only called tools.
    pub text: String,
    /// The files that belong to it.
    pub files: Vec<FileRef>,
    /// What the server told beside it.
    pub notices: Vec<Notice>,
    /// The tools it called and what became of them.
    pub calls: Vec<CallView>,
    /// When it was kept, in milliseconds since the Unix epoch.
    pub created_at_ms: i64,
}

/// The role of a message's author.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The user.
    User,
    /// The assistant.
    Assistant,
}

/// A tool call as a user sees it: never its arguments or result.
#[derive(Debug, Clone, PartialEq)]
pub struct CallView {
    /// The call's id.
    pub id: String,
    /// The tool.
    pub name: String,
    /// Its fate.
    pub fate: CallFate,
    /// Where its approval stands, if it needs one.
    pub approval: Option<Standing>,
    /// What it has made for the screen, itself or by helpers.
    pub artifacts: Vec<CallArtifact>,
    /// The call of an earlier run for which it stands: it makes what was let through, or repeats it with what its client says
    /// came of it.
    pub stands_for: Option<(RunId, String)>,
    /// Whether it is what a client has told of a call of its own.
    pub of_client: bool,
}

/// Where an export goes on: its sections one after the other, each behind what was read of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExportAt {
    /// The beginning.
    Start,
    /// Behind this message of this run, and all runs up to that one.
    Messages {
        /// The run's position in the conversation.
        run: i64,
        /// The message's number in it.
        seq: i64,
        /// Where the export ends.
        until: ExportEnd,
    },
    /// Behind the payload with this number.
    Payloads {
        /// The number.
        seq: i64,
        /// Where the export ends.
        until: ExportEnd,
    },
    /// Behind the artifact of this run with this number.
    Artifacts {
        /// The run's position in the conversation.
        run: i64,
        /// The artifact's number in it.
        seq: i64,
        /// Where the export ends.
        until: ExportEnd,
    },
    /// Behind the approval that was requested then and has this id.
    Approvals {
        /// When.
        at_ms: i64,
        /// The id.
        id: String,
        /// Where the export ends.
        until: ExportEnd,
    },
    /// Behind the trail's entry with this number.
    Trail {
        /// The number.
        id: i64,
        /// Where the export ends.
        until: ExportEnd,
    },
}

/// The newest rows when an export began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExportEnd {
    /// The newest run's position.
    pub run: i64,
    /// The newest entry of the trail.
    pub trail: i64,
}

/// A part of an export.
#[derive(Debug, Clone)]
pub struct ExportPart {
    /// Its items, in order.
    pub items: Vec<ExportItem>,
    /// Where the next one begins; `None` when there is none.
    pub next: Option<ExportAt>,
}

/// Something of a conversation, in the order of an export: its head, then its runs, each before its messages, then the
/// payloads, the artifacts, the approvals and the trail.
#[derive(Debug, Clone)]
pub enum ExportItem {
    /// The conversation as lists show it.
    Head(ConversationHead),
    /// A run. Its messages follow.
    Run(Box<RunExport>),
    /// A message of the run before it.
    Message(MessageExport),
    /// Data that a tool or a model made for the client.
    Payload(PayloadExport),
    /// What a tool has made for the client's screen.
    Artifact(ArtifactExport),
    /// A call that waited for an approval.
    Approval(Box<ApprovalView>),
    /// An entry of the trail.
    Trail(TrailItem),
}

/// A run without its messages.
#[derive(Debug, Clone)]
pub struct RunExport {
    /// The run.
    pub run: RunRecord,
    /// The message it goes on from; `None` at the beginning.
    pub parent: Option<MessageId>,
    /// The screen state that its request brought, or that it took over.
    pub context: Option<Box<RawValue>>,
    /// What its user thinks of it.
    pub feedback: Option<KeptFeedback>,
}

/// A payload as it was kept.
#[derive(Debug, Clone)]
pub struct PayloadExport {
    /// The run that made it.
    pub run: RunId,
    /// Its id.
    pub id: PayloadId,
    /// Its type.
    pub kind: String,
    /// Its summary in a line.
    pub summary: String,
    /// As its type says.
    pub data: Box<RawValue>,
}

/// An artifact as it was kept.
#[derive(Debug, Clone)]
pub struct ArtifactExport {
    /// The run.
    pub run: RunId,
    /// The call that made it.
    pub call: String,
    /// The helper that has made the call; `None` where the model that answers has.
    pub helper: Option<HelperOf>,
    /// Its kind.
    pub kind: String,
    /// As its kind says.
    pub body: Box<RawValue>,
}

/// A message as it is kept for the model.
#[derive(Debug, Clone)]
pub struct MessageExport {
    /// Its id.
    pub id: MessageId,
    /// `user`, `assistant` or `tool_results`.
    pub kind: String,
    /// When it was kept, in milliseconds since the Unix epoch.
    pub created_at_ms: i64,
    /// The message in the store's own JSON.
    pub body: Box<RawValue>,
    /// The files that it names.
    pub files: Vec<FileRef>,
}

/// An entry of the trail as it was kept.
#[derive(Debug, Clone)]
pub struct TrailItem {
    /// Its time, in milliseconds since the Unix epoch.
    pub at_ms: i64,
    /// Its kind.
    pub kind: String,
    /// In which run.
    pub run: Option<RunId>,
    /// A JSON object of the rest; secret-looking values are left out.
    pub body: Box<RawValue>,
}
