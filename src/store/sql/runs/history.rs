//! The history of a run: the newest messages on the way back to the root that fit, and the summary of those that do
//! not.

use super::client_history::client_history_of;
use super::{Branch, ConversationRow, Seat, SqlStore};
use crate::agent::ports::summaries::{Extent, HistoryBound, KeptSummary, Past};
use crate::chat::ids::RunId;
use crate::chat::message::Message;
use crate::chat::state::SummaryFigures;
use crate::store::client_history::decode_client_history;
use crate::store::database::Connection;
use crate::store::fault::Fault;
use crate::store::history::{HistoryBudget, presentable};
use crate::store::record::{run_parent, tokens};
use crate::store::record_error::RecordError;
use crate::store::scope::Reach;
use crate::store::statement::query;
use crate::store::summary::decode_summary;
use crate::store::transcript;

/// Rows of history read at once: a few runs, so that little is read in vain where it is cut.
const PAGE: usize = 32;

/// Runs walked at once when a summary is looked for.
const RUNS_AT_ONCE: usize = 50;

/// Beyond any number of a message.
const ALL: i64 = i64::MAX;

/// The way from the run `$4`, of which only messages before `$5` count, back towards the root: `$6` runs of it.
macro_rules! path {
    () => {
        concat!(
            "WITH RECURSIVE path (run_seq, before, parent_run_seq, parent_seq, depth) AS (
                 SELECT r.run_seq, CAST($5 AS BIGINT), ",
            run_parent!(),
            ", r.parent_seq, 1 FROM runs r
                 WHERE r.tenant = $1 AND r.user_id = $2 AND r.conversation = $3 AND r.run_seq = $4
                 UNION ALL
                 SELECT r.run_seq, COALESCE(path.parent_seq + 1, 9223372036854775807), ",
            run_parent!(),
            ", r.parent_seq, path.depth + 1
                 FROM path JOIN runs r
                     ON r.tenant = $1 AND r.user_id = $2 AND r.conversation = $3 AND r.run_seq = path.parent_run_seq
                 WHERE path.depth < $6)"
        )
    };
}

/// A row of a conversation: `run_seq`, `seq`, kind, body.
type Row = (i64, i64, String, String);

/// A run on the way to the root, and the summary that ends with it.
#[derive(sqlx::FromRow)]
struct PathRow {
    run_seq: i64,
    /// Before which of its messages the way goes on.
    before: i64,
    parent_run_seq: Option<i64>,
    parent_seq: Option<i64>,
    body: Option<String>,
    created_at: Option<i64>,
    original_tokens: Option<i64>,
    tokens: Option<i64>,
}

impl PathRow {
    fn into_summary(self) -> Result<KeptSummary, RecordError> {
        let figures = self.created_at.zip(self.original_tokens.zip(self.tokens));
        Ok(KeptSummary {
            text: decode_summary(&self.body.unwrap_or_default())?,
            figures: figures.map(|(at_ms, (original, own))| SummaryFigures {
                id: self.run_seq.to_string(),
                at_ms,
                original_tokens: tokens(original),
                tokens: tokens(own),
            }),
        })
    }
}

/// A run's row: its seat and its parent.
type RunPlace = (String, String, String, i64, Option<i64>, Option<i64>);

impl SqlStore {
    /// What a run that has begun reads now.
    ///
    /// # Errors
    /// When it is gone, or could not be read.
    pub(in crate::store::sql) async fn try_past(&self, run: RunId, bound: HistoryBound) -> Result<Past, Fault> {
        let mut transaction = self.database.read(Reach::All).await?;
        let row: Option<RunPlace> =
            query("SELECT tenant, user_id, conversation, run_seq, parent_run_seq, parent_seq FROM runs WHERE id = $1")
                .bind(run.to_string())
                .fetch_optional(&mut transaction)
                .await?;
        let Some((tenant, user, conversation, run_seq, parent_run_seq, parent_seq)) = row else {
            return Err(Fault::RunEnded);
        };
        let Seat { conversation, .. } = Seat::from((tenant, user, conversation, run_seq));
        self.database.narrow(&mut transaction, Reach::User(&conversation.scope)).await?;
        earlier(&mut transaction, &conversation, Branch::from_run_seq(parent_run_seq, parent_seq), bound).await
    }
}

/// The history of a run that goes on from `parent`, so much of it. Where the cut falls inside a run, that run's
/// question stays, so that its findings are not lost with it. Messages that a summary covers are left out.
pub(super) async fn earlier(
    connection: &mut dyn Connection,
    conversation: &ConversationRow,
    parent: Option<Branch>,
    bound: HistoryBound,
) -> Result<Past, Fault> {
    let mut budget = HistoryBudget::new(bound.bytes);
    let Some(parent) = parent else {
        let earlier = before_all(connection, conversation, &mut budget).await?;
        return Ok(Past { history: presentable(earlier), ..Past::default() });
    };
    let mut newest_first: Vec<(i64, Message)> = Vec::new();
    let known = if bound.by_summary { summary(connection, conversation, parent).await? } else { None };
    let covered = known.as_ref().map(|(upto, _)| *upto);
    let (mut open_run, mut cut_run, mut is_cut) = (None, None, covered.is_some());
    // The newest run of which a message is neither read nor, perhaps, in a summary.
    let mut left_out = None;
    let mut next = Some((parent.run_seq, parent.seq.map_or(ALL, |seq| seq.saturating_add(1))));
    'pages: while let Some(before) = next {
        let page = page(connection, conversation, before).await?;
        next = page.last().filter(|_| page.len() == PAGE).map(|(run_seq, seq, ..)| (*run_seq, *seq));
        for (run_seq, seq, kind, body) in page {
            if covered.is_some_and(|upto| run_seq <= upto) {
                break 'pages;
            }
            if !budget.take(body.len()) {
                is_cut = true;
                left_out = Some(run_seq);
                cut_run = open_run.or(newest_first.is_empty().then_some(run_seq));
                break 'pages;
            }
            newest_first.push((run_seq, transcript::decode(&kind, &body)?));
            open_run = (seq > 0).then_some(run_seq);
        }
    }
    if let Some(run_seq) = cut_run {
        newest_first.push((run_seq, question(connection, conversation, run_seq).await?));
    }
    let summary = match known {
        None if is_cut && !bound.by_summary => summary(connection, conversation, parent).await?,
        known => known,
    };
    if let Some((upto, _)) = &summary {
        newest_first.retain(|(run_seq, _)| run_seq > upto);
    }
    let mut newest_first: Vec<Message> = newest_first.into_iter().map(|(_, message)| message).collect();
    if !is_cut {
        newest_first.extend(before_all(connection, conversation, &mut budget).await?);
    }
    let history = presentable(newest_first);
    let extent = match &summary {
        Some((upto, _)) if left_out.is_none_or(|run_seq| run_seq <= *upto) => Extent::Summarised,
        None if left_out.is_none() => Extent::Whole,
        Some(_) | None => Extent::Partial,
    };
    Ok(Past { summary: summary.map(|(_, summary)| summary), history, extent })
}

/// The client's messages from before the conversation began, as far as they fit, the newest first.
async fn before_all(
    connection: &mut dyn Connection,
    conversation: &ConversationRow,
    budget: &mut HistoryBudget,
) -> Result<Vec<Message>, Fault> {
    let text = client_history_of(connection, &conversation.scope, &conversation.id).await?;
    Ok(text.map(|text| decode_client_history(&text, budget)).transpose()?.unwrap_or_default())
}

/// The message that a run answers.
pub(super) async fn question(
    connection: &mut dyn Connection,
    conversation: &ConversationRow,
    run_seq: i64,
) -> Result<Message, Fault> {
    let (kind, body): (String, String) = query(
        "SELECT kind, body FROM messages
         WHERE tenant = $1 AND user_id = $2 AND conversation = $3 AND run_seq = $4 AND seq = 0",
    )
    .bind((&conversation.scope, &conversation.id, run_seq))
    .fetch_one(connection)
    .await?;
    Ok(transcript::decode(&kind, &body)?)
}

/// The next rows before a position, newest first; fewer than a page when the root is reached. A run has at least one
/// message, so a page never needs more runs than it has rows, and the one it begins in.
async fn page(
    connection: &mut dyn Connection,
    conversation: &ConversationRow,
    (run_seq, before): (i64, i64),
) -> Result<Vec<Row>, sqlx::Error> {
    // The bodies of what is sorted away are not read. SQLite goes through a cross join from left to right, and would
    // else go through the whole conversation.
    let rows = query(concat!(
        path!(),
        ", newest AS (
             SELECT m.run_seq, m.seq FROM path CROSS JOIN messages m
             WHERE m.tenant = $1 AND m.user_id = $2 AND m.conversation = $3
                 AND m.run_seq = path.run_seq AND m.seq < path.before
             ORDER BY m.run_seq DESC, m.seq DESC LIMIT $7)
         SELECT m.run_seq, m.seq, m.kind, m.body FROM newest CROSS JOIN messages m
         WHERE m.tenant = $1 AND m.user_id = $2 AND m.conversation = $3
             AND m.run_seq = newest.run_seq AND m.seq = newest.seq
         ORDER BY m.run_seq DESC, m.seq DESC",
    ));
    let rows = rows.bind((&conversation.scope, &conversation.id));
    rows.bind((run_seq, before, PAGE as i64 + 1, PAGE as i64)).fetch_all(connection).await
}

/// The newest summary of a run that is on the way to the root with all of its messages, and that run's number.
async fn summary(
    connection: &mut dyn Connection,
    conversation: &ConversationRow,
    parent: Branch,
) -> Result<Option<(i64, KeptSummary)>, Fault> {
    let oldest: Option<i64> =
        query("SELECT MIN(upto_run_seq) FROM summaries WHERE tenant = $1 AND user_id = $2 AND conversation = $3")
            .bind((&conversation.scope, &conversation.id))
            .fetch_value(&mut *connection)
            .await?;
    let Some(oldest) = oldest else { return Ok(None) };
    let mut next = Some(parent);
    while let Some(from) = next.filter(|branch| branch.run_seq >= oldest) {
        let runs: Vec<PathRow> = query(concat!(
            path!(),
            "SELECT path.run_seq, path.before, path.parent_run_seq, path.parent_seq, s.body,
                 s.created_at, s.original_tokens, s.tokens
             FROM path LEFT JOIN summaries s
                 ON s.tenant = $1 AND s.user_id = $2 AND s.conversation = $3 AND s.upto_run_seq = path.run_seq
             ORDER BY path.run_seq DESC",
        ))
        .bind((
            &conversation.scope,
            &conversation.id,
            from.run_seq,
            from.seq.map_or(ALL, |seq| seq.saturating_add(1)),
            RUNS_AT_ONCE as i64,
        ))
        .fetch_all(&mut *connection)
        .await?;
        next = runs.last().and_then(|run| Branch::from_run_seq(run.parent_run_seq, run.parent_seq));
        if let Some(run) = runs.into_iter().find(|run| run.before == ALL && run.body.is_some()) {
            let run_seq = run.run_seq;
            return Ok(Some((run_seq, run.into_summary()?)));
        }
    }
    Ok(None)
}
