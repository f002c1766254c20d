//! `GET /v1/agent/usage`: what a user has used, by day and model; and, for whoever has the role that the settings name, what
//! their whole tenant has.

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Services;
use super::audit::note_read;
use super::auth::Authenticated;
use super::problem::Problem;
use super::views::UsedBody;
use crate::agent::ports::clock::{Clock, SystemClock};
use crate::agent::ports::store_error::StoreError;
use crate::agent::ports::usage::{Of, UsedInConversation, UsedInMonth, UsedOnDay};
use crate::chat::day::{Day, Days};

/// The days of an answer where the request names none: a month, today among them.
const DEFAULT_DAYS: i64 = 30;

/// The most days of one answer.
const MAX_DAYS: i64 = 400;

/// The most rows of one answer: those of a hundred models in a month.
const MAX_ROWS: u32 = 3000;

/// The most conversations of one answer.
const MAX_CONVERSATIONS: u32 = 100;

/// Which part of it.
#[derive(Deserialize)]
pub(super) struct Part {
    of: Option<String>,
    by: Option<String>,
    from: Option<String>,
    to: Option<String>,
}

/// What was used from one day to another, both among them, in UTC.
#[derive(Serialize, ToSchema)]
pub(super) struct UsageBody {
    of: &'static str,
    /// The most that the caller may ask for as `of`: `user`, or `tenant`.
    access: &'static str,
    from: String,
    to: String,
    total: UsedBody,
    /// By day and model; absent where something else was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    days: Option<Vec<DayBody>>,
    /// By month and model, with `by=month`.
    #[serde(skip_serializing_if = "Option::is_none")]
    months: Option<Vec<MonthBody>>,
    /// By conversation, with `by=conversation`: of those whose runs began on these days, the hundred with the highest cost.
    /// What belongs to no run, as summaries do, is in the total alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    conversations: Option<Vec<ConversationUsageBody>>,
}

/// One month's, of one model.
#[derive(Serialize, ToSchema)]
#[schema(as = UsageMonth)]
struct MonthBody {
    /// As 2026-11.
    month: String,
    model: String,
    #[serde(flatten)]
    used: UsedBody,
}

/// One conversation's.
#[derive(Serialize, ToSchema)]
#[schema(as = UsageConversation)]
struct ConversationUsageBody {
    conversation_id: String,
    title: String,
    #[serde(flatten)]
    used: UsedBody,
}

/// One day's, of one model.
#[derive(Serialize, ToSchema)]
#[schema(as = UsageDay)]
struct DayBody {
    day: String,
    model: String,
    #[serde(flatten)]
    used: UsedBody,
}

/// 200 with what was used, newest day first; 400 for days that are none, or too many; 403 for who asks for their tenant's
/// without the role.
#[utoipa::path(
    get,
    path = "/v1/agent/usage",
    operation_id = "getUsage",
    tag = "Usage",
    summary = "What was used, by day, month or conversation",
    description = "Tokens and cost of the caller, or of their tenant, in days of UTC, newest first; with `by` in months, or of conversations.",
    params(
        ("of" = Option<String>, Query, description = "`user` (the default) or `tenant`, which needs the role of `server.usage_role`."),
        ("by" = Option<String>, Query, description = "`day` (the default), `month`, or `conversation`, which is only for the caller's own."),
        ("from" = Option<String>, Query, description = "The first day, as 2026-11-22; 30 days up to `to` without it."),
        ("to" = Option<String>, Query, description = "The last day; today without it."),
    ),
    responses(
        (status = 200, description = "What was used.", body = UsageBody),
        (status = 400, description = "`invalid_request`: days that are none, more than 400 of them, or of more than 3,000 rows; an `of` or a `by` that is none."),
        (status = 403, description = "`forbidden`: the tenant's, for whoever has not the role."),
    ),
)]
pub(super) async fn get(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    part: Result<Query<Part>, QueryRejection>,
) -> Result<Json<UsageBody>, Problem> {
    let Query(Part { of, by, from, to }) =
        part.map_err(|_| Problem::bad_request("of, by, from and to must each be given once at most"))?;
    let days = days(from.as_deref(), to.as_deref())?;
    let role = &services.usage_role;
    let may_read_all = !role.is_empty() && caller.has_role(role);
    let (name, of) = match of.as_deref() {
        None | Some("" | "user") => ("user", Of::User(&caller.owner)),
        Some("tenant") => {
            if !may_read_all {
                return Err(Problem::forbidden("what the tenant has used is not for this user"));
            }
            note_read(&services, &caller, "", "/v1/agent/usage?of=tenant".to_owned()).await?;
            ("tenant", Of::Tenant(&caller.owner.tenant))
        }
        Some(_) => return Err(Problem::bad_request("of must be user or tenant")),
    };
    let total = services.usage.used(of, days).await.map_err(failed)?;
    let mut body = UsageBody {
        of: name,
        access: if may_read_all { "tenant" } else { "user" },
        from: days.from.to_string(),
        to: days.to.to_string(),
        total: UsedBody::from_used(total),
        days: None,
        months: None,
        conversations: None,
    };
    match by.as_deref() {
        None | Some("" | "day") => {
            let rows = not_too_many(services.usage.used_by_day(of, days, MAX_ROWS + 1).await.map_err(failed)?)?;
            let row = |UsedOnDay { day, model, used }| DayBody {
                day: day.to_string(),
                model,
                used: UsedBody::from_used(used),
            };
            body.days = Some(rows.into_iter().map(row).collect());
        }
        Some("month") => {
            let rows = not_too_many(services.usage.used_by_month(of, days, MAX_ROWS + 1).await.map_err(failed)?)?;
            let row = |UsedInMonth { month, model, used }| MonthBody { month, model, used: UsedBody::from_used(used) };
            body.months = Some(rows.into_iter().map(row).collect());
        }
        Some("conversation") => {
            let Of::User(owner) = of else {
                return Err(Problem::bad_request("by=conversation is only for the caller's own"));
            };
            let rows = services.usage.used_by_conversation(owner, days, MAX_CONVERSATIONS).await.map_err(failed)?;
            let row = |UsedInConversation { conversation, title, used }| ConversationUsageBody {
                conversation_id: conversation.to_string(),
                title,
                used: UsedBody::from_used(used),
            };
            body.conversations = Some(rows.into_iter().map(row).collect());
        }
        Some(_) => return Err(Problem::bad_request("by must be day, month or conversation")),
    }
    Ok(Json(body))
}

/// A part of the rows would look like all of them.
fn not_too_many<T>(rows: Vec<T>) -> Result<Vec<T>, Problem> {
    match rows.len() > MAX_ROWS as usize {
        true => Err(Problem::bad_request(format!("more than {MAX_ROWS} rows: ask for fewer days, or by month"))),
        false => Ok(rows),
    }
}

fn failed(error: StoreError) -> Problem {
    Problem::store_failed("usage not read", error)
}

fn days(from: Option<&str>, to: Option<&str>) -> Result<Days, Problem> {
    let day = |text: Option<&str>, default: Day| match text {
        None | Some("") => Ok(default),
        Some(text) => {
            Day::parse(text).ok_or_else(|| Problem::bad_request("from and to must be days such as 2026-11-22"))
        }
    };
    let to = day(to, Day::of_ms(SystemClock.now_ms()))?;
    let from = day(from, to.plus(1 - DEFAULT_DAYS))?;
    if !(0..MAX_DAYS).contains(&(to.0 - from.0)) {
        let detail = format!("from must not be after to, nor more than {MAX_DAYS} days before it");
        return Err(Problem::bad_request(detail));
    }
    Ok(Days { from, to })
}
