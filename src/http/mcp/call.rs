//! `tools/call`: a run is begun, or goes on behind what its client's user has decided.
//!
//! **Invariant:** a call that waits is decided only by its own user, beside the same call with the same arguments, once. What its
//! client sends back for that is the name of a run; all else is looked up.

use std::ops::ControlFlow;

use axum::http::HeaderMap;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::open::{Name, Open};
use super::tools::{self, Found};
use super::{Asker, Done, Told, made};
use crate::agent::ports::conversations::Role;
use crate::chat::approval::{Approval, Consent, Decision};
use crate::chat::ids::{ApprovalId, RunId};
use crate::chat::run::RunRecord;
use crate::dialect::accept::accepts;
use crate::dialect::asked::{Asked, Shape};
use crate::dialect::mcp::{
    AskArguments, CallRequest, Client, Id, InputReply, RpcError, Telling, Tool, asked, decided, direct,
};
use crate::http::Services;
use crate::http::address::base;
use crate::http::earlier::walk;
use crate::http::problem::Problem;

/// A call as it was read.
pub(super) struct Call {
    found: Found,
    name: String,
    given: Result<Given, String>,
    state: Option<String>,
    replies: Vec<InputReply>,
}

/// The arguments of a call.
enum Given {
    Ask(AskArguments),
    Own(Map<String, Value>),
}

/// The call in the parameters of a request.
///
/// # Errors
/// When they are none, or there is no such tool for the caller.
pub(super) fn read(
    (services, caller): Asker<'_>,
    only: Option<&str>,
    params: Option<&RawValue>,
) -> Result<Call, RpcError> {
    let call = CallRequest::read(params)?;
    let Some(found) = tools::find(services, caller, only, &call.name) else {
        let name: String = call.name.chars().take(100).collect();
        return Err(RpcError::Params(format!("there is no tool {name:?}")));
    };
    let given = match found.tool {
        Tool::Profile => call.ask(services.dialects.message_bytes).map(Given::Ask),
        Tool::Own => call.arguments().map(Given::Own),
    };
    let CallRequest { name, state, replies, .. } = call;
    Ok(Call { found, name, given, state, replies })
}

/// What a call asks for that was made by the request `id`.
pub(super) async fn prepare(
    (services, caller): Asker<'_>,
    call: Call,
    (id, client): (Id, Client),
    headers: &HeaderMap,
) -> Result<Done, Told> {
    let (tool, accepts_stream) = (call.found.tool, accepts(headers, "text/event-stream"));
    let shape = match tool {
        Tool::Profile if client.tasks => Shape::Record,
        Tool::Profile | Tool::Own if accepts_stream => Shape::Stream,
        Tool::Profile | Tool::Own => Shape::Document,
    };
    // A task is there at once, and has a method of its own by which it ends.
    let open = match shape {
        Shape::Record => Open::never(),
        Shape::Stream | Shape::Document => services.mcp.open.open(Name::new(&caller.owner, &id, headers)),
    };
    let mut telling = Telling {
        id,
        client,
        tool,
        public_url: services.dialects.public_url.clone(),
        base: base(services, headers).into(),
        made: Vec::new(),
        open: Some(open.run),
    };
    if let Some(state) = call.state.as_deref() {
        let record = waits((services, caller), &call, state).await?;
        let decisions: Vec<(ApprovalId, Decision)> =
            call.replies.into_iter().filter_map(|reply| Some((reply.approval, reply.decision?))).collect();
        if decisions.is_empty() {
            let words = "nothing was decided: the call still waits for its user";
            return Ok(Done::Answer(telling.refused(words)));
        }
        telling.made = made::up_to((services, caller), &record).await?;
        let form = call.given.ok().and_then(|given| match given {
            Given::Ask(arguments) => arguments.form,
            Given::Own(_) => None,
        });
        let how = (tool == Tool::Own, form);
        return Ok(begins(decided(record.conversation, decisions, how, telling.clone(), shape), telling, open.off));
    }
    let Call { found: Found { context_type, .. }, name, given, .. } = call;
    Ok(match given {
        Ok(Given::Ask(arguments)) => begins(asked(context_type, arguments, telling.clone(), shape), telling, open.off),
        Ok(Given::Own(arguments)) => {
            begins(direct(context_type, (name, arguments), telling.clone(), shape), telling, open.off)
        }
        Err(words) => Done::Answer(telling.refused(&words)),
    })
}

fn begins(asked: Asked, telling: Telling, off: CancellationToken) -> Done {
    Done::Begins(Box::new((asked, telling, off)))
}

/// The run in which this call waits for its user, as `state` names it.
///
/// # Errors
/// Where it is another user's, another call's, or no such one.
async fn waits(
    (services, caller): Asker<'_>,
    Call { found, name, given, replies, .. }: &Call,
    state: &str,
) -> Result<RunRecord, Told> {
    let refused = || Told::from(RpcError::Params("params.requestState is not that of this call".to_owned()));
    let run = RunId::parse(state).map_err(|_| refused())?;
    let record = services.runs.find(&caller.owner, run).await?.ok_or_else(refused)?;
    // A call that a model has asked for is decided beside the question to that model.
    if record.context_type != found.context_type || record.direct != (found.tool == Tool::Own) {
        return Err(refused());
    }
    let arguments = match given {
        Err(_) => return Err(refused()),
        Ok(Given::Own(arguments)) => Some(arguments),
        Ok(Given::Ask(arguments)) => {
            let is_its = |conversation: &String| conversation == record.conversation.as_str();
            let asked = question(services, caller, &record).await?;
            if !arguments.conversation.as_ref().is_none_or(is_its) || asked.as_deref() != Some(arguments.message.trim())
            {
                return Err(refused());
            }
            None
        }
    };
    for reply in replies {
        let view = services.runs.approval(caller, reply.approval).await?.ok_or_else(refused)?;
        // What somebody with a role has to let through was not asked of its own user.
        let is_its = view.approval.run == record.id && view.owner == caller.owner && !is_of_role(&view.approval);
        let is_same = arguments.is_none_or(|given| view.approval.tool == *name && view.approval.input == *given);
        if !is_its || !is_same {
            return Err(refused());
        }
    }
    Ok(record)
}

/// Whether a user with some role has to let a call through.
pub(super) fn is_of_role(approval: &Approval) -> bool {
    matches!(approval.consent, Consent::Role { .. })
}

/// The words of the user that a run answers, be it behind a decision.
async fn question(
    services: &Services,
    caller: &crate::chat::caller::Caller,
    record: &RunRecord,
) -> Result<Option<String>, Problem> {
    let (mut is_there, mut question) = (false, None);
    walk(services, &caller.owner, &record.conversation, |messages| {
        for message in messages.into_iter().rev() {
            is_there |= message.id.run == record.id;
            if is_there && message.role == Role::User && !message.text.is_empty() {
                question = Some(message.text.trim().to_owned());
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    })
    .await?;
    Ok(question)
}
