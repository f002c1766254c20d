//! The messages of one chat: the newest runs of its newest branch, as many as a reader's time and memory allow.

use std::collections::HashMap;

use super::artifacts::{self, artifact_columns};
use super::{KeptRow, kept};
use crate::agent::ports::chats::ChatRun;
use crate::chat::artifact::CallArtifact;
use crate::chat::ids::RunId;
use crate::chat::message::{Author, Message};
use crate::chat::payload::Payload;
use crate::chat::run::CancelledBy;
use crate::store::answer::decode_answer;
use crate::store::database::Connection;
use crate::store::fault::Fault;
use crate::store::record::{RunRow, cancel_requested, run_columns};
use crate::store::scope::Scope;
use crate::store::statement::query;
use crate::store::transcript;

/// Stored bytes of a chat that are read at most, but for those of its newest run: 4 MiB.
const MAX_BYTES: i64 = 4 << 20;

/// `cancel_requested` of a run that the next message has cancelled.
const SUPERSEDED: i64 = cancel_requested(CancelledBy::NextMessage);

/// Runs of a chat that are read at most.
const MAX_RUNS: i64 = 1000;

/// The newest branch of the conversation `$3` of the user `$2` of the tenant `$1`, from the run `$from` on.
macro_rules! newest_path {
    () => {
        with_path!("(SELECT MAX(run_seq) FROM runs WHERE tenant = $1 AND user_id = $2 AND conversation = $3)")
    };
    ($from:expr) => {
        with_path!("(SELECT MAX(run_seq) FROM runs WHERE tenant = $1 AND user_id = $2 AND conversation = $3)", $from)
    };
}

/// A run of a chat.
#[derive(sqlx::FromRow)]
struct ChatRow {
    #[sqlx(flatten)]
    run: RunRow,
    run_seq: i64,
    /// Up to which message it counts, where not all of it does.
    upto: Option<i64>,
    cancel_requested: i64,
    answer: Option<String>,
    diagnostics: Option<String>,
    context: Option<String>,
}

/// How large a run is.
#[derive(sqlx::FromRow)]
struct Size {
    run_seq: i64,
    /// Bytes of messages, answers and payloads.
    content: i64,
    /// Bytes of its diagnostics.
    diagnosed: i64,
}

/// Which runs of a chat are read: from one number to before another.
#[derive(Debug, PartialEq, Eq)]
struct Window {
    from: i64,
    before: i64,
    /// From which one on with its diagnostics.
    diagnosed_from: i64,
}

impl Window {
    /// The runs of these sizes that fit, the newest first, which is there whatever its size. Diagnostics get the bytes
    /// that the rest leaves.
    fn from_sizes(newest_first: &[Size], before: i64) -> Self {
        let mut window = Self { from: i64::MAX, before, diagnosed_from: i64::MAX };
        let mut left = MAX_BYTES;
        for (at, size) in newest_first.iter().enumerate() {
            if at > 0 && size.content > left {
                break;
            }
            left = left.saturating_sub(size.content).max(0);
            window.from = size.run_seq;
        }
        for size in newest_first.iter().take_while(|size| size.run_seq >= window.from) {
            if size.diagnosed > left {
                break;
            }
            left -= size.diagnosed;
            window.diagnosed_from = size.run_seq;
        }
        window
    }
}

/// The newest runs of the conversation's newest branch whose numbers are below `before`, oldest first.
///
/// # Errors
/// When they cannot be read.
pub(super) async fn chat_runs(
    connection: &mut dyn Connection,
    scope: &Scope,
    id: &str,
    before: i64,
) -> Result<Vec<ChatRun>, Fault> {
    let window = Window::from_sizes(&sizes(connection, scope, id, before).await?, before);
    let mut by_run = messages(connection, scope, id, &window).await?;
    let mut payloads = payloads(connection, scope, id, &window).await?;
    let mut made = made(connection, scope, id, &window).await?;
    let mut chat_runs = Vec::new();
    for row in runs(connection, scope, id, &window).await? {
        let own = by_run.remove(&row.run_seq).unwrap_or_default();
        let of_run = payloads.remove(&row.run.id()?).unwrap_or_default();
        let made = made.remove(&row.run.id()?).unwrap_or_default();
        chat_runs.push(chat_run(row, own, (of_run, made))?);
    }
    Ok(chat_runs)
}

fn chat_run(
    row: ChatRow,
    messages: Vec<Message>,
    (payloads, artifacts): (Vec<Payload>, Vec<CallArtifact>),
) -> Result<ChatRun, Fault> {
    let ChatRow { run, run_seq, upto, cancel_requested, answer, diagnostics, context } = row;
    let run = run.into_record()?;
    let by_server = messages.first().is_some_and(is_by_server);
    // Of a run that counts only in part, it is unknown which part of its answer does.
    let answer = answer.filter(|_| upto.is_none());
    let answer = answer.map(|body| decode_answer(&body, diagnostics.as_deref())).transpose()?;
    Ok(ChatRun {
        id: run.id,
        run_seq,
        state: run.state,
        error: run.error,
        is_superseded: cancel_requested == SUPERSEDED,
        messages,
        by_server,
        answer,
        payloads,
        artifacts,
        context: context.map(|text| transcript::screen(&text)).transpose()?,
        usage: run.usage,
        started_at_ms: run.created_at_ms,
        finished_at_ms: run.finished_at_ms,
    })
}

/// Whether the server wrote it in the user's role; see [`super::is_seen`].
fn is_by_server(message: &Message) -> bool {
    matches!(message, Message::User(user) if user.author != Author::User)
}

/// The sizes of the newest runs below a number, the newest first.
async fn sizes(
    connection: &mut dyn Connection,
    scope: &Scope,
    id: &str,
    before: i64,
) -> Result<Vec<Size>, sqlx::Error> {
    query(concat!(
        newest_path!(),
        "SELECT p.run_seq,
             CAST(COALESCE((SELECT SUM(octet_length(m.body)) FROM messages m
                  WHERE m.tenant = $1 AND m.user_id = $2 AND m.conversation = $3 AND m.run_seq = p.run_seq), 0)
             + COALESCE((SELECT SUM(octet_length(y.data) + octet_length(y.summary)) FROM payloads y
                  WHERE y.run_id = r.id), 0)
             + COALESCE((SELECT SUM(octet_length(a.body)) FROM artifacts a WHERE a.run_id = r.id), 0)
             + COALESCE(octet_length(d.answer), 0) + COALESCE(octet_length(d.context), 0) AS BIGINT) AS content,
             CAST(COALESCE(octet_length(d.diagnostics), 0) AS BIGINT) AS diagnosed
         FROM path p
         JOIN runs r ON r.tenant = $1 AND r.user_id = $2 AND r.conversation = $3 AND r.run_seq = p.run_seq
         LEFT JOIN run_details d ON d.run_id = r.id
         WHERE p.run_seq < $4 ORDER BY p.run_seq DESC LIMIT $5",
    ))
    .bind((scope, id, before, MAX_RUNS))
    .fetch_all(connection)
    .await
}

/// The runs, oldest first.
async fn runs(
    connection: &mut dyn Connection,
    scope: &Scope,
    id: &str,
    window: &Window,
) -> Result<Vec<ChatRow>, sqlx::Error> {
    query(concat!(
        newest_path!("$4"),
        "SELECT ",
        run_columns!(),
        ", r.run_seq, p.upto, r.cancel_requested, d.answer, CASE WHEN p.run_seq >= $5 THEN d.diagnostics END AS diagnostics, d.context
         FROM path p
         JOIN runs r ON r.tenant = $1 AND r.user_id = $2 AND r.conversation = $3 AND r.run_seq = p.run_seq
         LEFT JOIN run_details d ON d.run_id = r.id
         WHERE p.run_seq >= $4 AND p.run_seq < $6 ORDER BY r.run_seq",
    ))
    .bind((scope, id, window.from, window.diagnosed_from, window.before))
    .fetch_all(connection)
    .await
}

/// The messages by their runs.
async fn messages(
    connection: &mut dyn Connection,
    scope: &Scope,
    id: &str,
    window: &Window,
) -> Result<HashMap<i64, Vec<Message>>, Fault> {
    let rows: Vec<(i64, String, String)> = query(concat!(
        newest_path!("$4"),
        "SELECT m.run_seq, m.kind, m.body ",
        from_path!(),
        "AND p.run_seq >= $4 AND p.run_seq < $5 ORDER BY m.run_seq, m.seq",
    ))
    .bind((scope, id, window.from, window.before))
    .fetch_all(connection)
    .await?;
    let mut messages: HashMap<i64, Vec<Message>> = HashMap::new();
    for (run_seq, kind, body) in rows {
        messages.entry(run_seq).or_default().push(transcript::decode(&kind, &body)?);
    }
    Ok(messages)
}

/// The payloads by their runs, in the order in which they were kept.
async fn payloads(
    connection: &mut dyn Connection,
    scope: &Scope,
    id: &str,
    window: &Window,
) -> Result<HashMap<RunId, Vec<Payload>>, Fault> {
    let rows: Vec<KeptRow> = query(concat!(
        newest_path!("$4"),
        "SELECT y.run_id, y.id, y.kind, y.summary, y.data, y.source FROM path p
         JOIN runs r ON r.tenant = $1 AND r.user_id = $2 AND r.conversation = $3 AND r.run_seq = p.run_seq
         JOIN payloads y ON y.run_id = r.id
         WHERE p.run_seq >= $4 AND p.run_seq < $5 ORDER BY y.seq",
    ))
    .bind((scope, id, window.from, window.before))
    .fetch_all(connection)
    .await?;
    let mut payloads: HashMap<RunId, Vec<Payload>> = HashMap::new();
    for row in rows {
        let (run, payload) = kept(row)?;
        payloads.entry(run).or_default().push(payload);
    }
    Ok(payloads)
}

/// What calls have made, by their runs.
async fn made(
    connection: &mut dyn Connection,
    scope: &Scope,
    id: &str,
    window: &Window,
) -> Result<HashMap<RunId, Vec<CallArtifact>>, Fault> {
    let rows: Vec<artifacts::KeptRow> = query(concat!(
        newest_path!("$4"),
        "SELECT ",
        artifact_columns!(),
        " FROM path p
         JOIN runs r ON r.tenant = $1 AND r.user_id = $2 AND r.conversation = $3 AND r.run_seq = p.run_seq
         JOIN artifacts a ON a.run_id = r.id
         WHERE p.run_seq >= $4 AND p.run_seq < $5 ORDER BY p.run_seq, a.seq",
    ))
    .bind((scope, id, window.from, window.before))
    .fetch_all(connection)
    .await?;
    let mut made: HashMap<RunId, Vec<CallArtifact>> = HashMap::new();
    for row in rows {
        let (run, artifact) = row.into_artifact()?;
        made.entry(run).or_default().push(artifact);
    }
    Ok(made)
}

#[cfg(test)]
mod tests {
    use super::{MAX_BYTES, Size, Window};

    #[test]
    fn the_newest_runs_are_read_and_diagnostics_where_they_fit() {
        const HALF: i64 = MAX_BYTES / 2;
        let rows: [(&[(i64, i64)], _, _); 6] = [
            (&[], (i64::MAX, i64::MAX), "nothing"),
            (&[(1, 1), (1, 1), (1, 1)], (7, 7), "all fit"),
            (&[(HALF, 0), (HALF, 0), (1, 0)], (8, 8), "the third one does not"),
            (&[(HALF, HALF), (HALF, 0)], (8, i64::MAX), "messages go before diagnostics"),
            (&[(HALF, HALF), (0, 1), (0, 0)], (7, 9), "diagnostics of the newest"),
            (&[(MAX_BYTES + 1, 1), (1, 0)], (9, i64::MAX), "the newest is there whatever its size"),
        ];
        for (sizes, (from, diagnosed_from), reason) in rows {
            let sizes: Vec<Size> = (0..=9)
                .rev()
                .zip(sizes)
                .map(|(run_seq, &(content, diagnosed))| Size { run_seq, content, diagnosed })
                .collect();
            let before = i64::MAX;
            assert_eq!(Window::from_sizes(&sizes, before), Window { from, before, diagnosed_from }, "{reason}");
        }
    }
}
