//! All of a conversation as one document, or what its user sees of it as a text, written while it is read: a page is read
//! when the one before it is sent, so an export of any length takes the memory of one page.

use std::collections::HashSet;
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
use super::prose::Prose;
use super::share::{self, Slot};
use crate::agent::ports::conversations::{
    ExportAt, ExportItem, ExportPart, PageError, RunTranscript, TranscriptAt, TranscriptPart,
};
use crate::agent::ports::files::FileError;
use crate::bounded::memory::{Kind, Reservation};
use crate::chat::caller::Owner;
use crate::chat::causes::Causes;
use crate::chat::ids::{ConversationId, FileId};

/// What an export takes of its user's memory, and at first of the process's: a part, as it was read and as it is sent.
const EXPORT_BYTES: usize = 2 << 20;

/// How long an export that has begun waits for memory before it is broken off.
const PATIENCE: Duration = Duration::from_secs(20);

/// How often it asks.
const PACE: Duration = Duration::from_millis(200);

/// What an export is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Json,
    Prose(Prose),
}

impl Format {
    /// The format of that name; JSON where none is named.
    pub(super) fn parse(name: Option<&str>) -> Result<Self, Problem> {
        match name {
            None | Some("" | "json") => Ok(Self::Json),
            Some("markdown") => Ok(Self::Prose(Prose::Markdown)),
            Some("text") => Ok(Self::Prose(Prose::Text)),
            Some(_) => Err(Problem::bad_request("format must be json, markdown or text")),
        }
    }

    /// `Content-Disposition` and `Content-Type`. No other name: an id may have characters that file systems refuse.
    pub(super) fn headers(self) -> [&'static str; 2] {
        match self {
            Self::Json => ["attachment; filename=\"conversation.json\"", "application/json"],
            Self::Prose(Prose::Markdown) => {
                ["attachment; filename=\"conversation.md\"", "text/markdown; charset=utf-8"]
            }
            Self::Prose(Prose::Text) => ["attachment; filename=\"conversation.txt\"", "text/plain; charset=utf-8"],
        }
    }
}

/// What is read and written.
enum Writing {
    Json { document: Document, next: Option<ExportAt> },
    Prose { form: Prose, text: String, next: Option<TranscriptAt> },
}

/// An export that is under way.
pub(super) struct Export {
    services: Services,
    owner: Owner,
    id: ConversationId,
    held: Reservation,
    _share: share::Bytes,
    writing: Writing,
}

impl Export {
    /// Begins one; `None` when there is no such conversation.
    ///
    /// # Errors
    /// When it cannot be read, or there is no memory for it.
    pub(super) async fn begin(
        services: Services,
        slot: &Slot,
        (owner, id): (Owner, ConversationId),
        format: Format,
    ) -> Result<Option<Self>, Problem> {
        let share = slot.bytes(EXPORT_BYTES)?;
        let mut held = services.intake.memory().reserve(Kind::Export, EXPORT_BYTES)?;
        let writing = match format {
            Format::Json => {
                let first = services.exports.export(&owner, &id, ExportAt::Start, &mut held).await?;
                let Some(ExportPart { items, next }) = first else { return Ok(None) };
                let kept = kept(&services, &owner, &of_items(&items)).await?;
                let mut document = Document::default();
                items.into_iter().try_for_each(|item| document.add(item, &kept)).map_err(|error| {
                    tracing::error!(%error, "export not written");
                    Problem::internal()
                })?;
                Writing::Json { document, next }
            }
            Format::Prose(form) => {
                let first = services.exports.transcript(&owner, &id, None, &mut held).await?;
                let Some(TranscriptPart { head, runs, next }) = first else { return Ok(None) };
                let kept = kept(&services, &owner, &of_runs(&runs)).await?;
                let mut text = form.head(&head);
                runs.iter().for_each(|run| text.push_str(&form.run(run, &kept)));
                Writing::Prose { form, text, next }
            }
        };
        Ok(Some(Self { services, owner, id, held, _share: share, writing }))
    }

    /// The document, streamed. Where it cannot go on the stream breaks off, so that no client takes it for whole.
    pub(super) fn body(self) -> Body {
        Body::from_stream(stream::try_unfold(Some(self), |export| async move {
            let Some(mut export) = export else { return Ok::<_, io::Error>(None) };
            let (bytes, is_last) = export.more().await.inspect_err(|error| {
                tracing::warn!(error = %Causes(error), conversation.id = %export.id, "export broken off");
            })?;
            Ok(Some((bytes, if is_last { None } else { Some(export) })))
        }))
    }

    /// Reads and writes until there is something to send; whether it is the last of all.
    async fn more(&mut self) -> io::Result<(Bytes, bool)> {
        let Self { services, owner, id, held, writing, .. } = self;
        let gone = || io::Error::other("the conversation was deleted meanwhile");
        match writing {
            Writing::Json { document, next } => {
                while document.text.is_empty() {
                    let Some(at) = next.take() else {
                        document.end();
                        return Ok((document.written(), true));
                    };
                    held.shrink_to(EXPORT_BYTES);
                    let until = Instant::now() + PATIENCE;
                    let part = loop {
                        match services.exports.export(owner, id, at.clone(), held).await {
                            Err(PageError::Exhausted(_)) if Instant::now() < until => sleep(PACE).await,
                            read => break read.map_err(io::Error::other)?,
                        }
                    };
                    let ExportPart { items, next: behind } = part.ok_or_else(gone)?;
                    *next = behind;
                    let kept = kept(services, owner, &of_items(&items)).await.map_err(io::Error::other)?;
                    items.into_iter().try_for_each(|item| document.add(item, &kept)).map_err(io::Error::other)?;
                }
                Ok((document.written(), false))
            }
            Writing::Prose { form, text, next } => {
                if text.is_empty()
                    && let Some(at) = *next
                {
                    held.shrink_to(EXPORT_BYTES);
                    let until = Instant::now() + PATIENCE;
                    let part = loop {
                        match services.exports.transcript(owner, id, Some(at), held).await {
                            Err(PageError::Exhausted(_)) if Instant::now() < until => sleep(PACE).await,
                            read => break read.map_err(io::Error::other)?,
                        }
                    };
                    let TranscriptPart { runs, next: behind, .. } = part.ok_or_else(gone)?;
                    *next = behind;
                    let kept = kept(services, owner, &of_runs(&runs)).await.map_err(io::Error::other)?;
                    runs.iter().for_each(|run| text.push_str(&form.run(run, &kept)));
                }
                Ok((std::mem::take(text).into(), next.is_none()))
            }
        }
    }
}

/// The files that these messages name.
fn of_items(items: &[ExportItem]) -> Vec<FileId> {
    let messages = items.iter().filter_map(|item| match item {
        ExportItem::Message(message) => Some(&message.files),
        ExportItem::Head(_)
        | ExportItem::Run(_)
        | ExportItem::Payload(_)
        | ExportItem::Artifact(_)
        | ExportItem::Approval(_)
        | ExportItem::Trail(_) => None,
    });
    messages.flatten().map(|file| file.id).collect()
}

fn of_runs(runs: &[RunTranscript]) -> Vec<FileId> {
    runs.iter().flat_map(|run| &run.messages).flat_map(|message| &message.files).map(|file| file.id).collect()
}

/// Those of the files that are still kept.
async fn kept(services: &Services, owner: &Owner, files: &[FileId]) -> Result<HashSet<FileId>, FileError> {
    if files.is_empty() {
        return Ok(HashSet::new());
    }
    Ok(services.files.find(owner, files).await?.into_iter().map(|record| record.file.id).collect())
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
    fn add(&mut self, item: ExportItem, kept: &HashSet<FileId>) -> serde_json::Result<()> {
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
                self.write(&MessageExportBody::from_message(message, kept))
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
