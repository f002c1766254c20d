//! Calls that waited for a person: kept with the end of their run, decided with the beginning of the one that goes on,
//! and the ends that the model has not read yet.
//!
//! **Invariant:** a decision is taken once, in the transaction that begins its run: whoever else decides the same waits
//! for that conversation's row, and then finds it taken.

use std::fmt::Write;

use serde_json::Value;

use super::NotBegun;
use super::details::context_of;
use super::earlier::{Earlier, ResolvedQuestion, find, newest};
use super::history::question;
use super::plans::{PLAN_ENDED, end_paused};
use super::{Branch, ConversationRow, approvals, audit};
use crate::agent::ports::approvals::ApprovalView;
use crate::agent::ports::store::{BeginError, DECISION_ON_CALL, DecidedCall};
use crate::chat::approval::{Approval, ApprovalState, Consent, Decision};
use crate::chat::audit::{Act, Fact};
use crate::chat::ids::{ApprovalId, PlanId, RunId};
use crate::chat::line::one_line;
use crate::chat::message::{Author, Message, UserMessage};
use crate::chat::run::RunState;
use crate::chat::trail::{ApprovalVerdict, TrailEvent};
use crate::store::approval::{ApprovalRow, approval_columns, approved_call, turned_down};
use crate::store::database::Connection;
use crate::store::fault::Fault;
use crate::store::record::run_parent;
use crate::store::record_error::RecordError;
use crate::store::scope::{original, storable};
use crate::store::statement::{Batch, query};

/// The most ends in one run's message; the next one has the rest.
const ENDS_AT_ONCE: i64 = 50;

/// Takes the decision for the run `by`: what that run answers.
pub(super) async fn take(
    connection: &mut dyn Connection,
    conversation: &ConversationRow,
    by: RunId,
    (id, decision): (ApprovalId, &Decision),
    now: i64,
) -> Result<ResolvedQuestion, NotBegun> {
    let approval = note_decision(connection, conversation, by, (id, decision, None), now).await?;
    let run =
        find(connection, conversation, approval.run).await?.ok_or(NotBegun::Refused(BeginError::NoSuchApproval))?;
    let parent = Some(Branch { run_seq: run_to_go_on_from(connection, conversation, &run).await?, seq: None });
    let context = context_of(connection, conversation, run.run_seq).await?;
    let form = match question(connection, conversation, run.run_seq).await? {
        Message::User(asked) => asked.form,
        Message::Assistant(_) | Message::ToolResults(_) => None,
    };
    let message = UserMessage { form, ..UserMessage::by(Author::Decision, words(&approval.tool, decision)) };
    let continues = Some(approval.run.to_string());
    let decided = match decision.approve {
        true => DecidedCall::Approved(approved_call(approval, context.clone())?),
        false => DecidedCall::TurnedDown(turned_down(approval)),
    };
    Ok(ResolvedQuestion {
        parent,
        message,
        continues,
        chain: Some(run.chain()),
        answered: None,
        decided: Some(decided),
        context,
    })
}

/// Notes the decision, which the run `by` goes on with, and tells of it: the call. Of a run that has begun, with the number of
/// its message about that, 0 before it has one.
pub(super) async fn note_decision(
    connection: &mut dyn Connection,
    conversation: &ConversationRow,
    by: RunId,
    (id, decision, joined): (ApprovalId, &Decision, Option<i64>),
    now: i64,
) -> Result<Approval, NotBegun> {
    let row: Option<ApprovalRow> = query(concat!(
        "SELECT ",
        approval_columns!(),
        " FROM approvals a WHERE a.tenant = $1 AND a.user_id = $2 AND a.conversation = $3 AND a.id = $4 @for_update"
    ))
    .bind((&conversation.scope, &conversation.id, id.to_string()))
    .fetch_optional(&mut *connection)
    .await?;
    let Some(row) = row else { return Err(NotBegun::Refused(BeginError::NoSuchApproval)) };
    let view = row.into_view()?;
    match view.standing.state {
        ApprovalState::Pending | ApprovalState::Granted if view.standing.has_expired() => {
            return Err(NotBegun::Refused(BeginError::ApprovalExpired));
        }
        ApprovalState::Pending if decision.approve => {
            if let Consent::Role { role, not_requester: true } = view.approval.consent {
                return Err(NotBegun::Refused(BeginError::OwnRequest(role)));
            }
        }
        ApprovalState::Pending | ApprovalState::Granted => {}
        ApprovalState::Approved | ApprovalState::Rejected => {
            return Err(NotBegun::Refused(BeginError::AlreadyDecided));
        }
    }
    let approval = view.approval;
    let (state, verdict) = match decision.approve {
        true => (ApprovalState::Approved, ApprovalVerdict::Approved),
        false => (ApprovalState::Rejected, ApprovalVerdict::Rejected),
    };
    query(
        "UPDATE approvals SET state = $1, decided_at = $2, comment = COALESCE($3, comment), decided_in = $4, joined = $5
         WHERE tenant = $6 AND user_id = $7 AND id = $8",
    )
    .bind((state.name(), now, approvals::comment(decision)?, by.to_string(), joined))
    .bind((&conversation.scope, id.to_string()))
    .execute(&mut *connection)
    .await?;
    let comment = decision.comment.clone();
    let what = TrailEvent::ApprovalDecided { approval: id, tool: approval.tool.clone(), verdict, by: None, comment };
    approvals::tell(connection, (&conversation.scope, &conversation.id), now, &what).await?;
    let act = match decision.approve {
        true => Act::ApprovalApproved,
        false => Act::ApprovalRejected,
    };
    let (mut batch, user) = (Batch::default(), conversation.scope.user());
    audit::tell(&mut batch, &conversation.scope, approvals::decided(Fact::new(act, user, user), &approval));
    batch.run(connection).await?;
    Ok(approval)
}

/// The run after which the decision on a call of `run` comes: the newest one, where `run` is on its branch.
async fn run_to_go_on_from(
    connection: &mut dyn Connection,
    conversation: &ConversationRow,
    run: &Earlier,
) -> Result<i64, NotBegun> {
    let Some(newest) = newest(connection, conversation).await? else { return Ok(run.run_seq) };
    let on_branch: i64 = query(concat!(
        "WITH RECURSIVE path (run_seq, parent) AS (
             SELECT r.run_seq, ",
        run_parent!(),
        " FROM runs r WHERE r.tenant = $1 AND r.user_id = $2 AND r.conversation = $3 AND r.run_seq = $4
             UNION ALL
             SELECT r.run_seq, ",
        run_parent!(),
        " FROM path JOIN runs r
                 ON r.tenant = $1 AND r.user_id = $2 AND r.conversation = $3 AND r.run_seq = path.parent
             WHERE path.run_seq > $5)
         SELECT COUNT(*) FROM path WHERE run_seq = $5",
    ))
    .bind((&conversation.scope, &conversation.id, newest.run_seq, run.run_seq))
    .fetch_value(connection)
    .await?;
    Ok(if on_branch == 0 { run.run_seq } else { newest.run_seq })
}

/// The message to the model about the decision.
pub(super) fn words(tool: &str, decision: &Decision) -> String {
    let mut text = match decision.approve {
        true => format!(
            "{DECISION_ON_CALL}the user approved the call of {tool}. It is made once, now, and its result follows; where no \
             result follows it was not made."
        ),
        false => format!(
            "{DECISION_ON_CALL}the user turned down the call of {tool}. It was not made; do not make it again unless they ask \
             for it."
        ),
    };
    add_comment(&mut text, "Their words", decision.comment.as_deref());
    text.push(']');
    text
}

/// Adds a user's words on one line and in quotes: they are not ours.
fn add_comment(text: &mut String, whose: &str, comment: Option<&str>) {
    let words = comment.map(one_line).unwrap_or_default();
    if !words.is_empty() {
        // Writing to a text does not fail.
        let _ = write!(text, " {whose}: {}", Value::String(words));
    }
}

/// The call with whose decision the run `by` began: the one it has to make, or the one that was turned down.
pub(super) async fn call_of(
    connection: &mut dyn Connection,
    conversation: &ConversationRow,
    by: RunId,
) -> Result<Option<DecidedCall>, Fault> {
    // Of those that a run only tells the end of, none was decided when it began, by its own user before anybody else.
    let row: Option<ApprovalRow> = query(concat!(
        "SELECT ",
        approval_columns!(),
        " FROM approvals a JOIN runs r ON r.id = a.decided_in AND r.continues = a.run_id
         WHERE a.decided_in = $1 AND a.joined IS NULL AND (a.state = 'approved' OR a.state = 'rejected' AND a.decided_at = r.started_at)
         ORDER BY CASE a.state WHEN 'approved' THEN 0 ELSE 1 END, CASE WHEN a.decided_by IS NULL THEN 0 ELSE 1 END LIMIT 1",
    ))
    .bind(by.to_string())
    .fetch_optional(&mut *connection)
    .await?;
    let Some(ApprovalView { approval, standing, .. }) = row.map(ApprovalRow::into_view).transpose()? else {
        return Ok(None);
    };
    if standing.state == ApprovalState::Rejected {
        return Ok(Some(DecidedCall::TurnedDown(turned_down(approval))));
    }
    let run_seq: i64 = query("SELECT run_seq FROM runs WHERE id = $1")
        .bind(approval.run.to_string())
        .fetch_value(&mut *connection)
        .await?;
    let context = context_of(connection, conversation, run_seq).await?;
    Ok(Some(DecidedCall::Approved(approved_call(approval, context)?)))
}

/// Lets the call wait again with which the run `by` began, where that ends without having made or answered it: earlier
/// decisions on it still count. So does one that was turned down where a plan still waits for that. Call it before the rows
/// of the run's end are written.
pub(super) fn give_back(batch: &mut Batch, by: RunId) {
    let give_back = batch.say(
        "UPDATE approvals SET
             state = CASE WHEN decided_by IS NULL THEN 'pending' ELSE 'granted' END,
             decided_at = CASE WHEN decided_by IS NULL THEN NULL ELSE decided_at END,
             comment = CASE WHEN decided_by IS NULL THEN NULL ELSE comment END,
             decided_in = NULL
         WHERE decided_in = $1 AND joined IS NULL
             AND (state = 'approved' OR state = 'rejected' AND decided_at = (SELECT started_at FROM runs WHERE id = $1)
                 AND EXISTS (SELECT 1 FROM plans p WHERE p.id = approvals.plan_id AND p.status = 'paused'))
             AND NOT EXISTS (SELECT 1 FROM dispatches WHERE run_id = $1)
             AND NOT EXISTS (
                 SELECT 1 FROM runs r JOIN messages m ON m.tenant = r.tenant AND m.user_id = r.user_id
                     AND m.conversation = r.conversation AND m.run_seq = r.run_seq
                 WHERE r.id = $1 AND m.seq > 0)",
    );
    give_back.bind(by.to_string());
}

/// A call that ended: when it was requested, its id, tool, state, the comment, and its plan.
type EndRow = (i64, String, String, String, Option<String>, Option<String>);

/// The ends of waiting calls that the model has not read, marked as read: those that a user with a role turned down,
/// and those that were not decided in time. One bracketed line each.
pub(super) async fn tell_ends(
    connection: &mut dyn Connection,
    conversation: &ConversationRow,
    run: RunId,
    now: i64,
) -> Result<Option<String>, Fault> {
    let mut rows: Vec<EndRow> = query(
        "UPDATE approvals SET decided_in = $1
         WHERE tenant = $2 AND user_id = $3 AND id IN (
             SELECT id FROM approvals
             WHERE tenant = $2 AND user_id = $3 AND conversation = $4 AND decided_in IS NULL
                 AND (state = 'rejected' OR state IN ('pending', 'granted') AND expires_at <= @now)
                 AND NOT EXISTS (SELECT 1 FROM plans p WHERE p.id = approvals.plan_id AND p.status = 'executing')
             ORDER BY created_at, id LIMIT $5)
         RETURNING created_at, id, tool, state, comment, plan_id",
    )
    .bind((run.to_string(), &conversation.scope, &conversation.id, ENDS_AT_ONCE))
    .fetch_all(connection)
    .await?;
    // What an update returns comes in no promised order.
    rows.sort_unstable();
    let mut ended = Vec::with_capacity(rows.len());
    for row in rows {
        let (_, id, _, _, _, plan) = &row;
        let is_told = match plan.as_deref().map(PlanId::parse).transpose().map_err(RecordError::from)? {
            None => true,
            Some(plan) => {
                end_paused(connection, &conversation.scope, plan, RunState::Failed, now).await?
                    || !goes_on(connection, conversation, id).await?
            }
        };
        if is_told {
            ended.push(row);
        }
    }
    let lines = ended.into_iter().map(|(_, _, tool, state, comment, plan)| {
        let tool = original(&tool);
        if comment.as_deref() == Some(PLAN_ENDED) {
            return Ok(format!("{DECISION_ON_CALL}the call of {tool} was not made, since its plan has ended.]"));
        }
        let mut line = match ApprovalState::parse(&state) {
            Some(ApprovalState::Rejected) => {
                format!("{DECISION_ON_CALL}the call of {tool} was turned down by somebody who may, and was not made.")
            }
            Some(ApprovalState::Pending | ApprovalState::Granted | ApprovalState::Approved) | None => {
                format!("{DECISION_ON_CALL}nobody decided the call of {tool} in time, and it was not made.")
            }
        };
        let comment: Option<String> =
            comment.map(|text| serde_json::from_str(&text)).transpose().map_err(RecordError::json("comment"))?;
        if plan.is_some() {
            line.push_str(" The plan that needed it has ended with that.");
        }
        add_comment(&mut line, "Their words", comment.as_deref());
        line.push(']');
        Ok(line)
    });
    let lines: Vec<String> = lines.collect::<Result<_, Fault>>()?;
    Ok((!lines.is_empty()).then(|| lines.join("\n")))
}

/// Whether a run goes on meanwhile with the plan of that call, whose end is told later then.
async fn goes_on(connection: &mut dyn Connection, conversation: &ConversationRow, id: &str) -> Result<bool, Fault> {
    let later = query(
        "UPDATE approvals SET decided_in = NULL
         WHERE tenant = $1 AND user_id = $2 AND id = $3
             AND EXISTS (SELECT 1 FROM plans p WHERE p.id = approvals.plan_id AND p.status IN ('executing', 'paused'))",
    );
    Ok(later.bind((&conversation.scope, id)).execute(connection).await? > 0)
}

/// Writes the calls with which a run ends.
///
/// # Errors
/// When one cannot be written as JSON.
pub(super) fn insert_approvals(
    batch: &mut Batch,
    conversation: &ConversationRow,
    approvals: &[Approval],
) -> Result<(), RecordError> {
    for approval in approvals {
        let arguments = serde_json::to_string(&approval.arguments).map_err(RecordError::json("waiting call"))?;
        let input = serde_json::to_string(&approval.input).map_err(RecordError::json("waiting call"))?;
        let (_, role, not_requester) = approval.consent.wire_fields();
        let insert = batch.say(
            "INSERT INTO approvals (id, tenant, user_id, conversation, run_id, tool, arguments, digest, role, state,
                 created_at, expires_at, input, call_id, definition, not_requester, plan_id, step, agent_id)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 'pending', $10, $11, $12, $13, $14, $15, $16, $17, $18)",
        );
        let insert = insert.bind((approval.id.to_string(), &conversation.scope, &conversation.id));
        let insert = insert.bind((approval.run.to_string(), storable(&approval.tool), arguments));
        let insert = insert.bind((&approval.digest, role.map(storable), approval.created_at_ms));
        let insert = insert.bind((approval.expires_at_ms, input, approval.call.as_deref().map(storable)));
        let insert = insert.bind((approval.definition.as_deref(), i64::from(not_requester)));
        let origin = approval.origin.unwrap_or_default();
        insert.bind((origin.plan.map(|plan| plan.to_string()), origin.step.map(i64::from)));
        insert.bind(origin.agent.map(|agent| agent.to_string()));
    }
    Ok(())
}
