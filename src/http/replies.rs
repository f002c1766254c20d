//! What protocols get of runs: their ids, how they are sent, and why none was begun.

use std::time::Duration;

use super::Services;
use super::sse::View;
use crate::agent::ports::data::NotLoaded;
use crate::agent::ports::store::BeginError;
use crate::dialect::RunIds;
use crate::dialect::reply::{Numbered, Position, Refusal, RefusalReason, Reply};
use crate::runs::chain::{Cause, ChainError};
use crate::runs::{Attached, StartError};

/// How the run is sent.
pub(super) fn view(
    services: &Services,
    reply: &mut dyn Reply,
    attached: &Attached,
    number: Option<i64>,
    at: Position,
) -> View {
    let options = reply.options();
    View {
        encoder: reply.encoder(ids_of(attached, number), at),
        numbered: match options.numbered {
            Numbered::Never => false,
            Numbered::Background => attached.background,
            Numbered::Always => true,
        },
        keep_alive: silence(services, reply),
        draining: services.runs.draining().clone(),
    }
}

/// The longest silence of the protocol's streams; `None` is no limit.
pub(super) fn silence(services: &Services, reply: &dyn Reply) -> Option<Duration> {
    match reply.options().silence {
        None => services.keep_alive,
        Some(most) => Some(services.keep_alive.map_or(most, |silence| silence.min(most))),
    }
}

/// What the run is called.
pub(super) fn ids_of(attached: &Attached, number: Option<i64>) -> RunIds {
    RunIds {
        run: attached.run,
        conversation: attached.conversation.clone(),
        number,
        request: attached.request_id.clone(),
    }
}

/// The refusal, as a protocol gets it.
pub(super) fn refusal<'a>(not: &'a ChainError, request: &'a str) -> Refusal<'a> {
    Refusal { why: why(&not.cause), call: not.call, message: not.cause.to_string(), request }
}

fn why(cause: &Cause) -> RefusalReason<'_> {
    let error = match cause {
        Cause::Start(error) => error,
        Cause::NoSuchConversation => return RefusalReason::NoSuchConversation,
        Cause::Waiting(calls) => return RefusalReason::Waiting(calls),
        Cause::NothingLeft => return RefusalReason::NothingLeft,
        Cause::OtherCall => return RefusalReason::OtherCall,
        Cause::Kept => return RefusalReason::Kept,
        Cause::NotOnBranch(message) => return RefusalReason::NotOnBranch(*message),
    };
    match error {
        StartError::NoSuchRun => RefusalReason::NoSuchRun,
        StartError::Forbidden => RefusalReason::Forbidden,
        StartError::NotLoaded(NotLoaded::Denied | NotLoaded::NotThere) => RefusalReason::DataDenied,
        StartError::NotLoaded(NotLoaded::Failed) => RefusalReason::DataUnavailable,
        StartError::UnknownContextType(_) => RefusalReason::NoSuchAssistant,
        StartError::RoleRequired(_) => RefusalReason::RoleRequired,
        StartError::Begin(BeginError::OwnRequest(_)) => RefusalReason::OwnRequest,
        StartError::Begin(BeginError::NoSuchApproval) => RefusalReason::NoSuchApproval,
        StartError::Begin(BeginError::AlreadyDecided) => RefusalReason::AlreadyDecided,
        StartError::Begin(BeginError::ApprovalExpired) => RefusalReason::Expired,
        StartError::Begin(BeginError::NoSuchMessage) => RefusalReason::NoSuchMessage,
        StartError::Begin(BeginError::NothingToRepeat) => RefusalReason::NothingToRepeat,
        StartError::Begin(
            BeginError::Busy { .. }
            | BeginError::QueueFull
            | BeginError::KeyMismatch
            | BeginError::NoSuchRun
            | BeginError::NoSuchCall
            | BeginError::NotContinuable(_)
            | BeginError::TooMany(_)
            | BeginError::Unconfirmed(_)
            | BeginError::OverQuota(_)
            | BeginError::Store(_),
        )
        | StartError::NotOffered(_)
        | StartError::Draining
        | StartError::TooFast(_)
        | StartError::Full
        | StartError::OverBudget { .. }
        | StartError::Log(_)
        | StartError::Joined { .. }
        | StartError::Failed => RefusalReason::Other,
    }
}
