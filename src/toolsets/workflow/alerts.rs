//! Alerts: the caller's inbox, one alert, and what a rule has raised.

use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Kit, args, preview, projection};
use crate::agent::ports::tools::ToolContext;
use crate::chat::tool::ToolOutput;
use crate::tools::backend::{BackendError, Request};
use crate::tools::names::as_uuid;
use crate::tools::pages::Page;
use crate::tools::{Tool, ToolError, parse_args};

/// 50 alerts to a page unless the model asks otherwise.
const DEFAULT_ROWS: u64 = 50;

/// The backend's own limit.
const MAX_ROWS: u64 = 1000;

/// A million pages: a bound for the number, not for the list.
const MAX_PAGE: u64 = 1_000_000;

const STATUSES: [&str; 4] = ["active", "acknowledged", "dismissed", "resolved"];
const SEVERITIES: [&str; 4] = ["low", "medium", "high", "critical"];

/// `list_my_alerts`: the caller's own, of every status unless the model names one.
pub struct ListMine(pub Arc<Kit>);

/// `get_alert_detail`: one alert as the backend holds it.
pub struct GetDetail(pub Arc<Kit>);

/// `list_alerts_for_rule`: for administrators.
pub struct ListForRule(pub Arc<Kit>);

#[derive(Deserialize)]
struct ListArgs {
    #[serde(default)]
    workflow_id: Option<Value>,
    #[serde(default, deserialize_with = "args::optional_text")]
    status: Option<String>,
    #[serde(default, deserialize_with = "args::optional_text")]
    severity: Option<String>,
    #[serde(default)]
    page: Option<Value>,
    #[serde(default)]
    rows: Option<Value>,
}

#[derive(Deserialize)]
struct DetailArgs {
    #[serde(default, deserialize_with = "args::optional_text")]
    alert_id: Option<String>,
}

/// A list's query, checked.
struct Query {
    filters: Vec<(&'static str, String)>,
    page: u64,
    rows: u64,
}

#[async_trait]
impl Tool for ListMine {
    async fn call(&self, args: &Map<String, Value>, cx: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let query = Query::check(&parse_args(args)?)?;
        let alerts = query.fetch(&self.0, cx, &["v1", "workflow", "alerts", "mine"]).await?;
        Ok(ToolOutput::ok(alerts.to_string()))
    }
}

#[async_trait]
impl Tool for ListForRule {
    async fn call(&self, args: &Map<String, Value>, cx: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let args: ListArgs = parse_args(args)?;
        let mut query = Query::check(&args)?;
        let rule = self.0.resolver.open_rule(args.workflow_id.as_ref(), cx).await?;
        query.filters.push(("sourceRuleId", rule.id));
        let mut alerts = query.fetch(&self.0, cx, &["v1", "workflow", "alerts"]).await?;
        if let Some(note) = rule.note {
            alerts["note"] = json!(note);
        }
        Ok(ToolOutput::ok(alerts.to_string()))
    }
}

#[async_trait]
impl Tool for GetDetail {
    async fn call(&self, args: &Map<String, Value>, cx: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let args: DetailArgs = parse_args(args)?;
        let text = args::required("alert_id", args.alert_id)?;
        let Some(id) = as_uuid(&text) else {
            let length = text.chars().count();
            let beginning: String = text.chars().take(80).collect();
            return Err(ToolError::Refused(format!(
                "alert_id {beginning:?} ({length} characters) is not a UUID; copy the whole id from a list of alerts"
            )));
        };
        let alert = self.0.backend.call(cx.caller, Request::get(["v1", "workflow", "alerts", &id])).await?;
        if !alert.is_object() {
            return Err(BackendError::Shape("not an alert".to_owned()).into());
        }
        Ok(ToolOutput::ok(alert.to_string()))
    }
}

impl Query {
    fn check(args: &ListArgs) -> Result<Self, ToolError> {
        let mut filters = Vec::new();
        for (name, value, allowed) in [("status", &args.status, STATUSES), ("severity", &args.severity, SEVERITIES)] {
            let Some(value) = value else { continue };
            let value = value.to_lowercase();
            // The backend takes several severities, comma-separated and without blanks; one status.
            let parts: Vec<&str> = value.split(',').map(str::trim).collect();
            let may_be_several = name == "severity";
            if !parts.iter().all(|part| allowed.contains(part)) || (parts.len() > 1 && !may_be_several) {
                return Err(ToolError::BadParams(format!("{name} must be one of {}", allowed.join(", "))));
            }
            filters.push((name, parts.join(",")));
        }
        Ok(Self {
            filters,
            page: args::count("page", args.page.as_ref(), MAX_PAGE)?.unwrap_or(1),
            rows: args::count("rows", args.rows.as_ref(), MAX_ROWS)?.unwrap_or(DEFAULT_ROWS),
        })
    }

    async fn fetch(&self, kit: &Kit, cx: &ToolContext<'_>, segments: &[&str]) -> Result<Value, ToolError> {
        let (page, rows) = (self.page.to_string(), self.rows.to_string());
        let mut request = Request::get(segments.iter().copied()).query("page", &page).query("rows", &rows);
        for (key, value) in &self.filters {
            request = request.query(key, value);
        }
        let answer = kit.backend.call(cx.caller, request).await.map_err(preview::with_rights_hint)?;
        let mut alerts = Page::parse(answer)?;
        // The number of the request counts where the backend does not repeat it.
        alerts.number = usize::try_from(self.page).unwrap_or(usize::MAX);
        alerts.rows = alerts.rows.or(usize::try_from(self.rows).ok());
        Ok(projection::alerts(&alerts))
    }
}
