//! All of a conversation as one document, written while it is read: a page is read when the one before it is sent,
//! so an export of any length takes the memory of one page.

use std::io;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures::stream;
use serde::Serialize;
use tokio::time::{Instant, sleep};

use super::Services;
use super::approvals::ApprovalBody;
use super::conversation_views::{
    ArtifactExportBody, HeadBody, MessageExportBody, PayloadExportBody, RunExportBody, TrailItemBody,
};
use super::problem::Problem;
use super::share::{self, Slot};
use crate::agent::ports::conversations::{ExportAt, ExportItem, ExportPart, PageError};
use crate::bounded::memory::{Kind, Reservation};
use crate::chat::caller::Owner;
use crate::chat::causes::Causes;
use crate::chat::ids::ConversationId;

/// What an export takes of its user's memory, and at first of the process's: a part, as it was read and as it is sent.
const EXPORT_BYTES: usize = 2 << 20;

/// How long an export that has begun waits for memory before it is broken off.
const PATIENCE: Duration = Duration::from_secs(20);

/// How often it asks.
const PACE: Duration = Duration::from_millis(200);

/// An export that is under way.
pub(super) struct Export {
    services: Services,
    owner: Owner,
    id: ConversationId,
    held: Reservation,
    _share: share::Bytes,
    document: Document,
    next: Option<ExportAt>,
}

impl Export {
    /// Begins one; `None` when there is no such conversation.
    ///
    /// # Errors
    /// When it cannot be read, or there is no memory for it.
    pub(super) async fn begin(
        services: Services,
        slot: &Slot,
        owner: Owner,
        id: ConversationId,
    ) -> Result<Option<Self>, Problem> {
        let share = slot.bytes(EXPORT_BYTES)?;
        let mut held = services.memory.reserve(Kind::Export, EXPORT_BYTES)?;
        let first = services.exports.export(&owner, &id, ExportAt::Start, &mut held).await?;
        let Some(ExportPart { items, next }) = first else { return Ok(None) };
        let mut document = Document::default();
        items.into_iter().try_for_each(|item| document.add(item)).map_err(|error| {
            tracing::error!(%error, "export not written");
            Problem::internal()
        })?;
        Ok(Some(Self { services, owner, id, held, _share: share, document, next }))
    }

    /// The document, streamed. Where it cannot go on the stream breaks off, so that no client takes it for whole.
    pub(super) fn body(self) -> Body {
        Body::from_stream(stream::try_unfold(Some(self), |export| async move {
            let Some(mut export) = export else { return Ok::<_, io::Error>(None) };
            let is_last = export.more().await.inspect_err(|error| {
                tracing::warn!(error = %Causes(error), conversation.id = %export.id, "export broken off");
            })?;
            let bytes = export.document.written();
            Ok(Some((bytes, if is_last { None } else { Some(export) })))
        }))
    }

    /// Reads and writes until there is something to send; whether it is the last of all.
    async fn more(&mut self) -> io::Result<bool> {
        while self.document.text.is_empty() {
            let Some(at) = self.next.take() else {
                self.document.end();
                return Ok(true);
            };
            let part = self.part(at).await.map_err(io::Error::other)?;
            let gone = || io::Error::other("the conversation was deleted meanwhile");
            let ExportPart { items, next } = part.ok_or_else(gone)?;
            self.next = next;
            items.into_iter().try_for_each(|item| self.document.add(item)).map_err(io::Error::other)?;
        }
        Ok(false)
    }

    /// The part at that position, when there is memory for it.
    async fn part(&mut self, at: ExportAt) -> Result<Option<ExportPart>, PageError> {
        self.held.shrink_to(EXPORT_BYTES);
        let until = Instant::now() + PATIENCE;
        loop {
            let read = self.services.exports.export(&self.owner, &self.id, at.clone(), &mut self.held).await;
            match read {
                Err(PageError::Exhausted(_)) if Instant::now() < until => sleep(PACE).await,
                read => return read,
            }
        }
    }
}

/// The lists of the document, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum List {
    Runs,
    Payloads,
    Artifacts,
    Approvals,
    Trail,
}

impl List {
    const ALL: [Self; 5] = [Self::Runs, Self::Payloads, Self::Artifacts, Self::Approvals, Self::Trail];

    fn begin(self) -> &'static [u8] {
        match self {
            Self::Runs => br#","runs":["#,
            Self::Payloads => br#"],"payloads":["#,
            Self::Artifacts => br#"],"artifacts":["#,
            Self::Approvals => br#"],"approvals":["#,
            Self::Trail => br#"],"trail":["#,
        }
    }
}

/// The document, as far as it is written and not yet sent.
#[derive(Default)]
struct Document {
    text: Vec<u8>,
    list: Option<List>,
    /// Whether what comes next in a list is its first.
    is_first: bool,
    /// Whether the messages of a run are being written.
    in_run: bool,
}

impl Document {
    fn add(&mut self, item: ExportItem) -> serde_json::Result<()> {
        match item {
            ExportItem::Head(head) => {
                self.text.extend_from_slice(br#"{"conversation":"#);
                self.write(&HeadBody::from_head(head))
            }
            ExportItem::Run(run) => {
                self.next(List::Runs);
                self.write(&RunExportBody::from_export(*run))?;
                // Its messages are its last field: the list stays open for them.
                self.text.truncate(self.text.len().saturating_sub(b"]}".len()));
                (self.in_run, self.is_first) = (true, true);
                Ok(())
            }
            ExportItem::Message(message) => {
                self.comma();
                self.write(&MessageExportBody::from_message(message))
            }
            ExportItem::Payload(payload) => {
                self.next(List::Payloads);
                self.write(&PayloadExportBody::from_export(payload))
            }
            ExportItem::Artifact(artifact) => {
                self.next(List::Artifacts);
                self.write(&ArtifactExportBody::from_export(artifact))
            }
            ExportItem::Approval(view) => {
                self.next(List::Approvals);
                self.write(&ApprovalBody::from_view(*view))
            }
            ExportItem::Trail(item) => {
                self.next(List::Trail);
                self.write(&TrailItemBody(item))
            }
        }
    }

    /// The rest of the document.
    fn end(&mut self) {
        self.enter(List::Trail);
        self.text.extend_from_slice(b"]}");
    }

    /// The bytes written so far, to be sent.
    fn written(&mut self) -> Bytes {
        std::mem::take(&mut self.text).into()
    }

    /// Goes on to the next of that list.
    fn next(&mut self, list: List) {
        self.close_run();
        self.enter(list);
        self.comma();
    }

    fn close_run(&mut self) {
        if self.in_run {
            self.text.extend_from_slice(b"]}");
            (self.in_run, self.is_first) = (false, false);
        }
    }

    /// Goes on to that list: those in between are empty.
    fn enter(&mut self, list: List) {
        self.close_run();
        for between in List::ALL.into_iter().filter(|each| self.list.is_none_or(|at| *each > at) && *each <= list) {
            self.text.extend_from_slice(between.begin());
            self.is_first = true;
        }
        self.list = self.list.max(Some(list));
    }

    fn comma(&mut self) {
        if !std::mem::replace(&mut self.is_first, false) {
            self.text.push(b',');
        }
    }

    fn write(&mut self, body: &impl Serialize) -> serde_json::Result<()> {
        serde_json::to_writer(&mut self.text, body)
    }
}
