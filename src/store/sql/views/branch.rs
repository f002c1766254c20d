//! A conversation with the messages of one of its branches, a part at a time.

use std::collections::HashMap;

use super::artifacts::{KeptRow, artifact_columns};
use super::heads::find_head;
use super::used::used_by_runs;
use super::{SqlStore, feedback, is_seen};
use crate::agent::ports::conversations::{BranchRef, ConversationView, MessageView, PageError, RunNode};
use crate::agent::ports::feedback::KeptFeedback;
use crate::agent::ports::usage::Used;
use crate::bounded::memory::Reservation;
use crate::chat::approval::{ApprovalState, Standing};
use crate::chat::ids::{ApprovalId, ConversationId, MessageId, RunId};
use crate::chat::run::RunRecord;
use crate::store::answer::decode_answer;
use crate::store::database::Connection;
use crate::store::fates::decode_fates;
use crate::store::fault::{Fault, Undone};
use crate::store::record::{RunRow, run_columns, run_parent};
use crate::store::record_error::RecordError;
use crate::store::scope::{Reach, Scope, original, storable};
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

/// Runs of a conversation whose versions are known: its newest ones.
const TREE_RUNS: i64 = 2000;

/// The branch of the conversation `$3` of the user `$2` of the tenant `$1` that ends with the run number `$4`.
macro_rules! branch_path {
    () => {
        with_path!("$4")
    };
}

/// The same, from the run `$5` on.
macro_rules! window_path {
    () => {
        with_path!("$4", "$5")
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

/// The branch that is read: its conversation, and the number of its last run.
struct Tip<'a> {
    conversation: &'a str,
    run_seq: i64,
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
        branch: BranchRef<'_>,
        (before, limit): (i64, u32),
        held: &mut Reservation,
    ) -> Result<Option<ConversationView>, Undone<PageError>> {
        let mut transaction = self.database.read(Reach::User(scope)).await?;
        let id = branch.conversation;
        let Some(head) = find_head(&mut transaction, scope, id).await? else { return Ok(None) };
        let Some(run_seq) = last_run(&mut transaction, scope, branch).await? else {
            // Of a conversation without runs there is nothing but its head; a run that is named has to be there.
            let (messages, runs, feedback, used) = (Vec::new(), Vec::new(), Vec::new(), Used::default());
            let empty = ConversationView { head, messages, runs, earlier: None, feedback, used };
            return Ok(branch.tip.is_none().then_some(empty));
        };
        let tip = &Tip { conversation: id.as_str(), run_seq };
        let window = Window::from_sizes(&sizes(&mut transaction, scope, tip, before).await?, before, limit);
        let more = held.grow(window.bytes.saturating_mul(TIMES).saturating_sub(held.bytes()));
        more.map_err(|exhausted| Undone::Refused(exhausted.into()))?;
        let mut messages = messages_of(&mut transaction, scope, tip, &window).await?;
        for (run, body) in answers(&mut transaction, scope, tip, &window).await? {
            let run = RunId::parse(&run).map_err(RecordError::from)?;
            view::replace_with_answer_text(&mut messages, run, &decode_answer(&body, None)?);
        }
        for row in artifacts(&mut transaction, scope, tip, &window).await? {
            let (run, made) = row.into_artifact()?;
            view::add_artifact(&mut messages, run, made);
        }
        for (run, call, approval) in approved(&mut transaction, scope, tip, &window).await? {
            let run = RunId::parse(&run).map_err(RecordError::from)?;
            let approval = ApprovalId::parse(&approval).map_err(RecordError::from)?;
            view::link_approved(&mut messages, approval, (run, &original(&call)));
        }
        for row in requested(&mut transaction, scope, tip, &window).await? {
            let run = RunId::parse(&row.run_id).map_err(RecordError::from)?;
            let state = ApprovalState::parse(&row.state).ok_or(RecordError::Approval)?;
            view::set_standing(&mut messages, run, &original(&row.call_id), Standing { state, is_over: row.is_over });
        }
        let runs = runs(&mut transaction, scope, tip, &window).await?;
        let feedback = given(&mut transaction, scope, tip, &window).await?;
        let used = used_by_runs(&mut transaction, scope, id).await?;
        let earlier = window.has_earlier.then(|| window.from.to_string());
        Ok(Some(ConversationView { head, messages, runs, earlier, feedback, used }))
    }

    pub(super) async fn try_tree(&self, scope: &Scope, id: &ConversationId) -> Result<Vec<RunNode>, Fault> {
        let rows: Vec<NodeRow> = query(concat!(
            "SELECT n.id, n.parent, n.parent_seq, n.run_seq, m.seq IS NOT NULL AS asks,
                 CASE WHEN n.siblings > 1 THEN CAST(LENGTH(m.body) AS TEXT) || ' ' || SUBSTR(m.body, 1, 2000) END AS asked
             FROM (SELECT r.id, ",
            run_parent!(),
            " AS parent, r.parent_seq, r.run_seq, COUNT(*) OVER (PARTITION BY ",
            run_parent!(),
            ", r.parent_seq) AS siblings
                 FROM runs r WHERE r.tenant = $1 AND r.user_id = $2 AND r.conversation = $3
                 ORDER BY r.run_seq DESC LIMIT $4) AS n
             LEFT JOIN messages m ON m.tenant = $1 AND m.user_id = $2 AND m.conversation = $3 AND m.run_seq = n.run_seq
                 AND m.kind = 'user' AND m.seq = 0 AND m.author IS NULL
             ORDER BY n.run_seq DESC",
        ))
        .bind((scope, id.as_str(), TREE_RUNS))
        .fetch_all(&mut self.database.reading(Reach::User(scope)).await?)
        .await?;
        nodes(rows)
    }
}

/// A run in the tree of its conversation.
#[derive(sqlx::FromRow)]
struct NodeRow {
    id: String,
    parent: Option<i64>,
    parent_seq: Option<i64>,
    run_seq: i64,
    asks: bool,
    /// Where another run has the same place: how long the message is, and how it begins.
    asked: Option<String>,
}

/// The runs, oldest first; what is left of a conversation whose oldest runs are not read begins at its root.
fn nodes(newest_first: Vec<NodeRow>) -> Result<Vec<RunNode>, Fault> {
    let mut ids: HashMap<i64, RunId> = HashMap::with_capacity(newest_first.len());
    let mut nodes = Vec::with_capacity(newest_first.len());
    for row in newest_first.into_iter().rev() {
        let run = RunId::parse(&row.id).map_err(RecordError::from)?;
        ids.insert(row.run_seq, run);
        let parent = row.parent.and_then(|parent| ids.get(&parent).copied());
        let asked = row.asks.then(|| row.asked.unwrap_or_default());
        nodes.push(RunNode { run, parent, message: row.parent_seq, asked });
    }
    Ok(nodes)
}

/// The number of the last run of a branch; `None` where there is no such run.
async fn last_run(
    connection: &mut dyn Connection,
    scope: &Scope,
    BranchRef { conversation, tip }: BranchRef<'_>,
) -> Result<Option<i64>, sqlx::Error> {
    let Some(tip) = tip else {
        let newest = "SELECT MAX(run_seq) FROM runs WHERE tenant = $1 AND user_id = $2 AND conversation = $3";
        return query(newest).bind((scope, conversation.as_str())).fetch_value(connection).await;
    };
    let named = "SELECT MAX(run_seq) FROM runs WHERE tenant = $1 AND user_id = $2 AND conversation = $3 AND id = $4";
    query(named).bind((scope, conversation.as_str(), tip.to_string())).fetch_value(connection).await
}

/// The runs of a part, oldest first.
async fn runs(
    connection: &mut dyn Connection,
    scope: &Scope,
    tip: &Tip<'_>,
    window: &Window,
) -> Result<Vec<RunRecord>, Fault> {
    let rows: Vec<RunRow> = query(concat!(
        window_path!(),
        "SELECT ",
        run_columns!(),
        " FROM path p
         JOIN runs r ON r.tenant = $1 AND r.user_id = $2 AND r.conversation = $3 AND r.run_seq = p.run_seq
         WHERE p.run_seq >= $5 AND p.run_seq < $6 ORDER BY r.run_seq",
    ))
    .bind((scope, tip.conversation, tip.run_seq, window.from, window.before))
    .fetch_all(connection)
    .await?;
    rows.into_iter().map(|row| Ok(row.into_record()?)).collect()
}

impl SqlStore {
    /// A question is its run's first message.
    pub(super) async fn try_message_known_as(
        &self,
        scope: &Scope,
        id: &ConversationId,
        name: &str,
    ) -> Result<Option<MessageId>, Fault> {
        let run: Option<String> = query(
            "SELECT id FROM runs WHERE tenant = $1 AND user_id = $2 AND conversation = $3 AND asked_as = $4
             ORDER BY run_seq DESC LIMIT 1",
        )
        .bind((scope, id.as_str(), storable(name)))
        .fetch_optional_value(&mut self.database.reading(Reach::User(scope)).await?)
        .await?;
        let run = run.map(|run| RunId::parse(&run)).transpose().map_err(RecordError::from)?;
        Ok(run.map(|run| message_id(run, 0)))
    }
}

/// The sizes of the newest runs before a number, the newest first, and of one more than a part may have.
async fn sizes(
    connection: &mut dyn Connection,
    scope: &Scope,
    tip: &Tip<'_>,
    before: i64,
) -> Result<Vec<Size>, sqlx::Error> {
    query(concat!(
        branch_path!(),
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
         WHERE p.run_seq < $5 ORDER BY p.run_seq DESC LIMIT $6",
    ))
    .bind((scope, tip.conversation, tip.run_seq, before, PART_RUNS + 1))
    .fetch_all(connection)
    .await
}

async fn messages_of(
    connection: &mut dyn Connection,
    scope: &Scope,
    tip: &Tip<'_>,
    window: &Window,
) -> Result<Vec<MessageView>, Fault> {
    let rows: Vec<Row> = query(concat!(
        window_path!(),
        "SELECT r.id, m.seq, CASE WHEN m.created_at = 0 THEN r.started_at ELSE m.created_at END, m.kind,
             CASE WHEN m.fates IS NULL THEN m.body ELSE m.fates END, m.fates IS NOT NULL ",
        from_path!(),
        "AND p.run_seq >= $5 AND p.run_seq < $6 AND (m.kind = 'tool_results' OR ",
        is_seen!(),
        ") ORDER BY m.run_seq, m.seq",
    ))
    .bind((scope, tip.conversation, tip.run_seq, window.from, window.before))
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
    tip: &Tip<'_>,
    window: &Window,
) -> Result<Vec<(String, String)>, sqlx::Error> {
    query(concat!(
        window_path!(),
        "SELECT r.id, d.answer FROM path p
         JOIN runs r ON r.tenant = $1 AND r.user_id = $2 AND r.conversation = $3 AND r.run_seq = p.run_seq
         JOIN run_details d ON d.run_id = r.id
         WHERE d.answer IS NOT NULL AND p.run_seq >= $5 AND p.run_seq < $6",
    ))
    .bind((scope, tip.conversation, tip.run_seq, window.from, window.before))
    .fetch_all(connection)
    .await
}

/// What the calls of these runs have made.
async fn artifacts(
    connection: &mut dyn Connection,
    scope: &Scope,
    tip: &Tip<'_>,
    window: &Window,
) -> Result<Vec<KeptRow>, sqlx::Error> {
    query(concat!(
        window_path!(),
        "SELECT ",
        artifact_columns!(),
        " FROM path p
         JOIN runs r ON r.tenant = $1 AND r.user_id = $2 AND r.conversation = $3 AND r.run_seq = p.run_seq
         JOIN artifacts a ON a.run_id = r.id
         WHERE p.run_seq >= $5 AND p.run_seq < $6 ORDER BY p.run_seq, a.seq",
    ))
    .bind((scope, tip.conversation, tip.run_seq, window.from, window.before))
    .fetch_all(connection)
    .await
}

/// The calls that these runs have made since they were let through: the run and the id with which each was requested, and its
/// approval.
async fn approved(
    connection: &mut dyn Connection,
    scope: &Scope,
    tip: &Tip<'_>,
    window: &Window,
) -> Result<Vec<(String, String, String)>, sqlx::Error> {
    query(concat!(
        window_path!(),
        "SELECT a.run_id, a.call_id, a.id FROM path p
         JOIN runs r ON r.tenant = $1 AND r.user_id = $2 AND r.conversation = $3 AND r.run_seq = p.run_seq
         JOIN approvals a ON a.decided_in = r.id
         WHERE a.state = 'approved' AND a.call_id IS NOT NULL AND p.run_seq >= $5 AND p.run_seq < $6",
    ))
    .bind((scope, tip.conversation, tip.run_seq, window.from, window.before))
    .fetch_all(connection)
    .await
}

/// Where an approval that the model's own call needs stands.
#[derive(sqlx::FromRow)]
struct RequestedRow {
    run_id: String,
    call_id: String,
    state: String,
    is_over: bool,
}

/// The approvals that these runs have asked for.
async fn requested(
    connection: &mut dyn Connection,
    scope: &Scope,
    tip: &Tip<'_>,
    window: &Window,
) -> Result<Vec<RequestedRow>, sqlx::Error> {
    query(concat!(
        window_path!(),
        "SELECT a.run_id, a.call_id, a.state, a.expires_at <= @now AS is_over FROM path p
         JOIN runs r ON r.tenant = $1 AND r.user_id = $2 AND r.conversation = $3 AND r.run_seq = p.run_seq
         JOIN approvals a ON a.run_id = r.id
         WHERE a.call_id IS NOT NULL AND a.plan_id IS NULL AND a.agent_id IS NULL AND p.run_seq >= $5 AND p.run_seq < $6",
    ))
    .bind((scope, tip.conversation, tip.run_seq, window.from, window.before))
    .fetch_all(connection)
    .await
}

/// What the user thinks of these runs, in their order.
async fn given(
    connection: &mut dyn Connection,
    scope: &Scope,
    tip: &Tip<'_>,
    window: &Window,
) -> Result<Vec<KeptFeedback>, Fault> {
    let rows: Vec<feedback::KeptRow> = query(concat!(
        window_path!(),
        "SELECT f.run_id, f.score, f.body, f.given_at FROM path p
         JOIN runs r ON r.tenant = $1 AND r.user_id = $2 AND r.conversation = $3 AND r.run_seq = p.run_seq
         JOIN feedback f ON f.run_id = r.id
         WHERE p.run_seq >= $5 AND p.run_seq < $6 ORDER BY p.run_seq",
    ))
    .bind((scope, tip.conversation, tip.run_seq, window.from, window.before))
    .fetch_all(connection)
    .await?;
    rows.into_iter().map(|row| Ok(feedback::kept(row)?)).collect()
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
