//! Lists of items: what a conversation has, message by message, and what a response answers.

use std::ops::ControlFlow;

use axum::Json;
use axum::extract::Query;
use axum::extract::rejection::QueryRejection;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{field, told};
use crate::agent::ports::conversations::{ExportAt, ExportItem, MessageView, Role};
use crate::bounded::memory::Kind;
use crate::chat::caller::Owner;
use crate::chat::ids::{ConversationId, RunId};
use crate::chat::run::RunRecord;
use crate::dialect::RunIds;
use crate::dialect::responses::{About, Answer, Item, of_question};
use crate::http::Services;
use crate::http::earlier::walk;
use crate::http::pages::limit;
use crate::http::problem::Problem;

/// Items of a part, usually and at most.
const LIMITS: (u32, u32) = (20, 100);

/// Which part of a list of items, as far as the query tells.
pub(super) type ItemsQuery = Result<Query<Part>, QueryRejection>;

/// Which part of a list of items.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Part {
    /// How many, 1 to 100; else 20.
    #[param(pattern = "^([1-9][0-9]?|100)?$")]
    limit: Option<String>,
    /// `asc`, or `desc`, which is usual.
    #[param(pattern = "^(asc|desc)?$")]
    order: Option<String>,
    /// The item after which the list begins.
    after: Option<String>,
}

/// The same, read.
pub(super) struct ItemsPart {
    limit: usize,
    newest_first: bool,
    after: Option<String>,
}

/// A part of a list of items.
#[derive(Serialize, ToSchema)]
#[schema(as = ResponseItemList)]
pub(super) struct Items {
    object: &'static str,
    data: Vec<Item>,
    /// Empty where there is none.
    first_id: String,
    /// Empty where there is none.
    last_id: String,
    has_more: bool,
}

impl ItemsPart {
    /// The part that a query asks for.
    ///
    /// # Errors
    /// When it is none.
    pub(super) fn read(query: ItemsQuery) -> Result<Self, Problem> {
        let Query(Part { limit: count, order, after }) =
            query.map_err(|_| Problem::bad_request("each parameter may be given once"))?;
        let newest_first = match order.as_deref() {
            None | Some("" | "desc") => true,
            Some("asc") => false,
            Some(_) => return Err(field("order", "must be asc or desc")),
        };
        let limit = usize::try_from(limit(count.as_deref(), LIMITS)?).unwrap_or(usize::MAX);
        Ok(Self { limit, newest_first, after: after.filter(|after| !after.is_empty()) })
    }

    /// 200 with this part of `items`, which are all of them, oldest first.
    ///
    /// # Errors
    /// When it begins behind an item that is not there.
    pub(super) fn of(self, mut items: Vec<Item>) -> Result<Response, Problem> {
        let Self { limit, newest_first, after } = self;
        if newest_first {
            items.reverse();
        }
        if let Some(after) = after {
            let at = items.iter().position(|item| item.id() == after);
            let at = at.ok_or_else(|| field("after", "must be the id of an item of this list"))?;
            items.drain(..=at);
        }
        let has_more = items.len() > limit;
        items.truncate(limit);
        let id = |item: Option<&Item>| item.map(|item| item.id().to_owned()).unwrap_or_default();
        let (first_id, last_id) = (id(items.first()), id(items.last()));
        Ok(Json(Items { object: "list", data: items, first_id, last_id, has_more }).into_response())
    }
}

/// The messages of a run on the newest branch of its conversation, oldest first.
pub(in crate::http) async fn of_run(
    services: &Services,
    owner: &Owner,
    record: &RunRecord,
) -> Result<Vec<MessageView>, Problem> {
    let mut found = Vec::new();
    walk(services, owner, &record.conversation, |messages| {
        found.extend(messages.into_iter().filter(|message| message.id.run == record.id));
        // A run is in one part.
        if found.is_empty() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })
    .await?;
    Ok(found)
}

/// The user's words among messages.
pub(super) fn questions(messages: &[MessageView]) -> Vec<Item> {
    let of_user = messages.iter().filter(|message| message.role == Role::User && !message.text.is_empty());
    of_user.map(|message| Item::question(of_question(message.id.run), message.text.clone())).collect()
}

/// All items of the newest branch of a conversation, oldest first; `None` where there is no such conversation.
pub(super) async fn of_conversation(
    services: &Services,
    owner: &Owner,
    id: &ConversationId,
) -> Result<Option<Vec<Item>>, Problem> {
    let mut held = services.intake.memory().reserve(Kind::Export, 0)?;
    let (mut parts, mut failed) = (Vec::new(), None);
    let there = walk(services, owner, id, |messages| {
        let bytes = messages.iter().map(|message| message.text.len() + size_of::<MessageView>()).sum();
        if let Err(error) = held.grow(bytes) {
            failed = Some(error);
            return ControlFlow::Break(());
        }
        parts.push(messages);
        ControlFlow::Continue(())
    })
    .await?;
    if let Some(error) = failed {
        return Err(error.into());
    }
    let messages: Vec<MessageView> = parts.into_iter().rev().flatten().collect();
    let mut items = Vec::new();
    for of_run in messages.chunk_by(|one, next| one.id.run == next.id.run) {
        items.extend(questions(of_run));
        if let Some(first) = of_run.first() {
            items.extend(answered((first.id.run, id), of_run, services));
        }
    }
    Ok(there.then_some(items))
}

/// What the assistant has said and done in messages of one run.
fn answered((run, conversation): (RunId, &ConversationId), messages: &[MessageView], services: &Services) -> Vec<Item> {
    let ids = RunIds { run, conversation: conversation.clone(), number: None, request: String::new() };
    let mut answer = Answer::new(About::new(&ids, "", true, services.dialects.public_url.clone()), &ids);
    told::told(messages).iter().for_each(|event| answer.take(event));
    answer.into_items()
}

/// Whether no other run is in the conversation of this one, on whatever branch.
pub(super) async fn is_only_run(services: &Services, owner: &Owner, record: &RunRecord) -> Result<bool, Problem> {
    let mut at = Some(ExportAt::Start);
    while let Some(from) = at {
        let mut held = services.intake.memory().reserve(Kind::Export, 0)?;
        let part = services.exports.export(owner, &record.conversation, from, &mut held).await?;
        let Some(part) = part else { break };
        let is_other = |item: &ExportItem| matches!(item, ExportItem::Run(run) if run.run.id != record.id);
        if part.items.iter().any(is_other) {
            return Ok(false);
        }
        at = part.next;
    }
    Ok(true)
}
