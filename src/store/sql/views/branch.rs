//! A conversation with the messages of its newest branch, a part at a time.

use super::artifacts::{KeptRow, kept};
use super::heads::find_head;
use super::{SqlStore, is_seen};
use crate::agent::ports::conversations::{ConversationView, MessageView, PageError};
use crate::bounded::memory::Reservation;
use crate::chat::ids::{ConversationId, MessageId, RunId};
use crate::store::answer::decode_answer;
use crate::store::database::Connection;
use crate::store::fates::decode_fates;
use crate::store::fault::{Fault, Undone};
use crate::store::record_error::RecordError;
use crate::store::scope::{Reach, Scope};
use crate::store::statement::query;
use crate::store::transcript;
use crate::store::view::{self, Kept, ViewPart};

/// A message of a branch: its run, its number there, when it was kept, kind, body; or the fates of calls instead of
/// their results, which may be long and are left out, and whether it is fates.
type Row = (String, i64, i64, String, String, bool);

/// Stored bytes of a part at most, but for those of its newest run: 1 MiB.
const PART_BYTES: i64 = 1 << 20;

/// The memory of a part, as a multiple of its stored bytes: its rows, their values, and the answer's text.
const TIMES: usize = 4;

/// Runs of a part at most.
const PART_RUNS: i64 = 1000;

/// The newest branch of the conversation `$3` of the user `$2` of the tenant `$1`.
macro_rules! newest_path {
    () => {
        with_path!("(SELECT MAX(run_seq) FROM runs WHERE tenant = $1 AND user_id = $2 AND conversation = $3)")
    };
}

/// How large a run is: its number, messages, bytes.
type Size = (i64, i64, i64);

/// The runs of a part: from this number to before that one, and whether there are others before them.
#[derive(Debug, PartialEq, Eq)]
struct Window {
    from: i64,
    before: i64,
    has_earlier: bool,
    bytes: usize,
}

impl Window {
    /// The runs of these sizes that fit, the newest first, which is there whatever its size.
    fn from_sizes(newest_first: &[Size], before: i64, limit: u32) -> Self {
        let mut window = Self { from: before, before, has_earlier: false, bytes: 0 };
        let (mut messages, mut bytes) = (0_i64, 0_i64);
        for &(run_seq, of_run, size) in newest_first {
            let fits = messages.saturating_add(of_run) <= i64::from(limit) && bytes.saturating_add(size) <= PART_BYTES;
            if !fits && window.from != before {
                window.has_earlier = true;
                break;
            }
            (messages, bytes, window.from) = (messages + of_run, bytes + size, run_seq);
        }
        window.has_earlier |= newest_first.len() > usize::try_from(PART_RUNS).unwrap_or(usize::MAX);
        window.bytes = usize::try_from(bytes).unwrap_or_default();
        window
    }
}

impl SqlStore {
    pub(super) async fn try_conversation(
        &self,
        scope: &Scope,
        id: &ConversationId,
        (before, limit): (i64, u32),
        held: &mut Reservation,
    ) -> Result<Option<ConversationView>, Undone<PageError>> {
        let mut transaction = self.database.read(Reach::User(scope)).await?;
        let Some(head) = find_head(&mut transaction, scope, id).await? else { return Ok(None) };
        let window = Window::from_sizes(&sizes(&mut transaction, scope, id, before).await?, before, limit);
        let more = held.grow(window.bytes.saturating_mul(TIMES).saturating_sub(held.bytes()));
        more.map_err(|exhausted| Undone::Refused(exhausted.into()))?;
        let mut messages = newest_branch(&mut transaction, scope, id, &window).await?;
        for (run, body) in answers(&mut transaction, scope, id, &window).await? {
            let run = RunId::parse(&run).map_err(RecordError::from)?;
            view::replace_with_answer_text(&mut messages, run, &decode_answer(&body, None)?);
        }
        for row in artifacts(&mut transaction, scope, id, &window).await? {
            let (run, made) = kept(row)?;
            view::add_artifact(&mut messages, run, made);
        }
        let earlier = window.has_earlier.then(|| window.from.to_string());
        Ok(Some(ConversationView { head, messages, earlier }))
    }
}

/// The sizes of the newest runs before a number, the newest first, and of one more than a part may have.
async fn sizes(
    connection: &mut dyn Connection,
    scope: &Scope,
    id: &ConversationId,
    before: i64,
) -> Result<Vec<Size>, sqlx::Error> {
    query(concat!(
        newest_path!(),
        "SELECT p.run_seq,
             (SELECT COUNT(*) FROM messages m WHERE m.tenant = $1 AND m.user_id = $2 AND m.conversation = $3
                  AND m.run_seq = p.run_seq AND m.kind <> 'tool_results'),
             CAST(COALESCE((SELECT SUM(octet_length(CASE WHEN m.fates IS NULL THEN m.body ELSE m.fates END))
                  FROM messages m WHERE m.tenant = $1 AND m.user_id = $2 AND m.conversation = $3
                      AND m.run_seq = p.run_seq), 0)
             + COALESCE((SELECT SUM(octet_length(a.body)) FROM artifacts a WHERE a.run_id = r.id), 0)
             + COALESCE(octet_length(d.answer), 0) AS BIGINT)
         FROM path p
         JOIN runs r ON r.tenant = $1 AND r.user_id = $2 AND r.conversation = $3 AND r.run_seq = p.run_seq
         LEFT JOIN run_details d ON d.run_id = r.id
         WHERE p.run_seq < $4 ORDER BY p.run_seq DESC LIMIT $5",
    ))
    .bind((scope, id.as_str(), before, PART_RUNS + 1))
    .fetch_all(connection)
    .await
}

async fn newest_branch(
    connection: &mut dyn Connection,
    scope: &Scope,
    id: &ConversationId,
    window: &Window,
) -> Result<Vec<MessageView>, Fault> {
    let rows: Vec<Row> = query(concat!(
        newest_path!(),
        "SELECT r.id, m.seq, CASE WHEN m.created_at = 0 THEN r.started_at ELSE m.created_at END, m.kind,
             CASE WHEN m.fates IS NULL THEN m.body ELSE m.fates END, m.fates IS NOT NULL ",
        from_path!(),
        "AND p.run_seq >= $4 AND p.run_seq < $5 AND (m.kind = 'tool_results' OR ",
        is_seen!(),
        ") ORDER BY m.run_seq, m.seq",
    ))
    .bind((scope, id.as_str(), window.from, window.before))
    .fetch_all(connection)
    .await?;
    let kept = rows.into_iter().map(|(run, seq, created_at_ms, kind, body, is_fates)| {
        let what = match is_fates {
            true => ViewPart::Fates(decode_fates(&body)?),
            false => ViewPart::from_message(transcript::decode(&kind, &body)?),
        };
        let run = RunId::parse(&run).map_err(RecordError::from)?;
        Ok(Kept { id: message_id(run, seq), created_at_ms, what })
    });
    Ok(view::messages(kept.collect::<Result<_, Fault>>()?))
}

/// The answers as users saw them, with their runs.
async fn answers(
    connection: &mut dyn Connection,
    scope: &Scope,
    id: &ConversationId,
    window: &Window,
) -> Result<Vec<(String, String)>, sqlx::Error> {
    query(concat!(
        newest_path!(),
        "SELECT r.id, d.answer FROM path p
         JOIN runs r ON r.tenant = $1 AND r.user_id = $2 AND r.conversation = $3 AND r.run_seq = p.run_seq
         JOIN run_details d ON d.run_id = r.id
         WHERE d.answer IS NOT NULL AND p.run_seq >= $4 AND p.run_seq < $5",
    ))
    .bind((scope, id.as_str(), window.from, window.before))
    .fetch_all(connection)
    .await
}

/// What the calls of these runs have made.
async fn artifacts(
    connection: &mut dyn Connection,
    scope: &Scope,
    id: &ConversationId,
    window: &Window,
) -> Result<Vec<KeptRow>, sqlx::Error> {
    query(concat!(
        newest_path!(),
        "SELECT a.run_id, a.call, a.kind, a.body FROM path p
         JOIN runs r ON r.tenant = $1 AND r.user_id = $2 AND r.conversation = $3 AND r.run_seq = p.run_seq
         JOIN artifacts a ON a.run_id = r.id
         WHERE p.run_seq >= $4 AND p.run_seq < $5 ORDER BY p.run_seq, a.seq",
    ))
    .bind((scope, id.as_str(), window.from, window.before))
    .fetch_all(connection)
    .await
}

/// The id of a stored message.
pub(super) fn message_id(run: RunId, seq: i64) -> MessageId {
    MessageId { run, seq: u32::try_from(seq).unwrap_or(u32::MAX) }
}

#[cfg(test)]
mod tests {
    use super::{PART_BYTES, Size, Window};

    #[test]
    fn a_part_has_the_newest_runs_that_fit_and_always_one() {
        let rows: [(&[Size], (i64, bool), &str); 6] = [
            (&[], (9, false), "nothing"),
            (&[(8, 2, 10), (5, 2, 10)], (5, false), "all fit"),
            (&[(8, 2, 10), (5, 3, 10), (1, 1, 1)], (8, true), "too many messages with the second"),
            (&[(8, 2, PART_BYTES), (5, 2, 1)], (8, true), "too many bytes"),
            (&[(8, 100, PART_BYTES * 9)], (8, false), "the newest is there whatever its size"),
            (&[(8, 100, PART_BYTES * 9), (7, 0, 0)], (8, true), "and what is before it comes later"),
        ];
        for (sizes, expected, reason) in rows {
            let window = Window::from_sizes(sizes, 9, 4);
            assert_eq!((window.from, window.has_earlier), expected, "{reason}");
        }
    }
}
