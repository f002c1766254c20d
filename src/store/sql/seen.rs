//! Which messages of a conversation a user sees, and how many they are.
//!
//! A run keeps how many there were on its branch before it (`seen_before`), known when it starts to run, and how many
//! are its own (`seen_own`), known when it has ended. So the newest run tells the conversation's number. Runs that keep
//! none, because they live, never ran or are version 1's, are counted.

use crate::chat::ids::RunId;
use crate::store::database::Connection;
use crate::store::fault::Fault;
use crate::store::record::run_parent;
use crate::store::scope::Scope;
use crate::store::statement::{Batch, query};

/// Whether a user sees the message `m`: the question that begins a run, unless the server wrote it in the user's role,
/// and every answer but one that the loop itself has refused, after which it asks again in the user's role.
macro_rules! is_seen {
    () => {
        "(m.kind = 'user' AND m.seq = 0 AND m.author IS NULL
              OR m.kind = 'assistant' AND NOT EXISTS (
                 SELECT 1 FROM messages n WHERE n.tenant = m.tenant AND n.user_id = m.user_id
                     AND n.conversation = m.conversation AND n.run_seq = m.run_seq AND n.seq = m.seq + 1 AND n.kind = 'user'))"
    };
}
pub(super) use is_seen;

/// How many messages a user sees on the way from the root to the run `tip`, up to and including its message `upto`, or
/// all of them. Goes back only as far as it has to: to the first run that knows what was before it.
///
/// # Errors
/// When the database fails.
pub(super) async fn count_seen(
    connection: &mut dyn Connection,
    scope: &Scope,
    conversation: &str,
    (tip, upto): (i64, Option<i64>),
) -> Result<i64, Fault> {
    let count = query(concat!(
        "WITH RECURSIVE path (run_seq, parent, parent_seq, upto, seen_before, seen_own) AS (
             SELECT r.run_seq, ",
        run_parent!(),
        ", r.parent_seq, CAST($5 AS BIGINT), r.seen_before, r.seen_own FROM runs r
             WHERE r.tenant = $1 AND r.user_id = $2 AND r.conversation = $3 AND r.run_seq = $4
             UNION ALL
             SELECT r.run_seq, ",
        run_parent!(),
        ", r.parent_seq, path.parent_seq, r.seen_before, r.seen_own FROM path JOIN runs r
                 ON r.tenant = $1 AND r.user_id = $2 AND r.conversation = $3 AND r.run_seq = path.parent
             WHERE path.seen_before IS NULL
         )
         SELECT CAST(COALESCE(SUM(COALESCE(path.seen_before, 0) + CASE
             WHEN path.upto IS NULL AND path.seen_own IS NOT NULL THEN path.seen_own
             ELSE (SELECT COUNT(*) FROM messages m
                   WHERE m.tenant = $1 AND m.user_id = $2 AND m.conversation = $3 AND m.run_seq = path.run_seq
                       AND (path.upto IS NULL OR m.seq <= path.upto) AND ",
        is_seen!(),
        ") END), 0) AS BIGINT) FROM path",
    ));
    let count = count.bind((scope, conversation));
    Ok(count.bind((tip, upto)).fetch_value(connection).await?)
}

/// Notes how many messages a user sees of a run that has ended, all of which are there, and how much of what it has spent
/// is charged, if that is new.
pub(super) fn note_seen(batch: &mut Batch, run: RunId, charged: Option<i64>) {
    let note = batch.say(concat!(
        "UPDATE runs SET seen_own = (
             SELECT COUNT(*) FROM runs r JOIN messages m ON m.tenant = r.tenant AND m.user_id = r.user_id
                 AND m.conversation = r.conversation AND m.run_seq = r.run_seq
             WHERE r.id = $1 AND ",
        is_seen!(),
        "), charged = COALESCE($2, charged) WHERE id = $1",
    ));
    note.bind((run.to_string(), charged));
}
