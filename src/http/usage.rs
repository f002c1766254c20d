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
use crate::agent::ports::clock::{Clock, SystemClock};
use crate::agent::ports::store_error::StoreError;
use crate::agent::ports::usage::{Of, Used, UsedOnDay};
use crate::chat::day::{Day, Days};

/// The days of an answer where the request names none: a month, today among them.
const DEFAULT_DAYS: i64 = 30;

/// The most days of one answer.
const MAX_DAYS: i64 = 400;

/// The most rows of one answer: those of a hundred models in a month.
const MAX_ROWS: u32 = 3000;

/// Which part of it.
#[derive(Deserialize)]
pub(super) struct Part {
    of: Option<String>,
    from: Option<String>,
    to: Option<String>,
}

/// What was used from one day to another, both among them, in UTC.
#[derive(Serialize, ToSchema)]
pub(super) struct UsageBody {
    of: &'static str,
    from: String,
    to: String,
    total: UsedBody,
    days: Vec<DayBody>,
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

/// Counts, and what they cost where models have prices.
#[derive(Serialize, ToSchema)]
struct UsedBody {
    runs: u64,
    turns: u64,
    input_tokens: u64,
    output_tokens: u64,
    cached_input_tokens: u64,
    cost_usd: f64,
}

impl UsedBody {
    fn from_used(used: Used) -> Self {
        let Used { runs, turns, input_tokens, output_tokens, cached_input_tokens, cost } = used;
        Self { runs, turns, input_tokens, output_tokens, cached_input_tokens, cost_usd: cost.usd() }
    }
}

/// 200 with what was used, newest day first; 400 for days that are none, or too many; 403 for who asks for their tenant's
/// without the role.
#[utoipa::path(
    get,
    path = "/v1/agent/usage",
    operation_id = "getUsage",
    tag = "Usage",
    summary = "What was used, by day and model",
    description = "Tokens and cost of the caller, or of their tenant, in days of UTC, newest first.",
    params(
        ("of" = Option<String>, Query, description = "`user` (the default) or `tenant`, which needs the role of `server.usage_role`."),
        ("from" = Option<String>, Query, description = "The first day, as 2026-11-22; 30 days up to `to` without it."),
        ("to" = Option<String>, Query, description = "The last day; today without it."),
    ),
    responses(
        (status = 200, description = "What was used.", body = UsageBody),
        (status = 400, description = "`invalid_request`: days that are none, or more than 400 of them."),
        (status = 403, description = "`forbidden`: the tenant's, for whoever has not the role."),
    ),
)]
pub(super) async fn get(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    part: Result<Query<Part>, QueryRejection>,
) -> Result<Json<UsageBody>, Problem> {
    let Query(Part { of, from, to }) =
        part.map_err(|_| Problem::bad_request("of, from and to must each be given once at most"))?;
    let days = days(from.as_deref(), to.as_deref())?;
    let (name, of) = match of.as_deref() {
        None | Some("" | "user") => ("user", Of::User(&caller.owner)),
        Some("tenant") => {
            let role = &services.usage_role;
            if role.is_empty() || !caller.has_role(role) {
                return Err(Problem::forbidden("what the tenant has used is not for this user"));
            }
            note_read(&services, &caller, "", "/v1/agent/usage?of=tenant".to_owned()).await?;
            ("tenant", Of::Tenant(&caller.owner.tenant))
        }
        Some(_) => return Err(Problem::bad_request("of must be user or tenant")),
    };
    let total = services.usage.used(of, days).await.map_err(failed)?;
    let rows = services.usage.used_by_day(of, days, MAX_ROWS).await.map_err(failed)?;
    let row = |UsedOnDay { day, model, used }| DayBody { day: day.to_string(), model, used: UsedBody::from_used(used) };
    Ok(Json(UsageBody {
        of: name,
        from: days.from.to_string(),
        to: days.to.to_string(),
        total: UsedBody::from_used(total),
        days: rows.into_iter().map(row).collect(),
    }))
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
