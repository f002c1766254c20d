//! The routes of projects and tasks, and the same as tables in the way of PostgREST: what `config/samples/buildos` needs to plan.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::caller::AnyUser;
use super::error::{ApiError, Code};
use super::extract::{Body, Params, PathOf};
use super::records::all::MAX_RECORDS;
use super::records::ontology::{Ontology, Task};
use super::records::stamp::Stamp;
use super::state::Demo;

/// Rows of a table in one answer.
const MOST: usize = 50;

/// The priority of a task of which none is said.
const NORMAL: u8 = 3;

fn good(data: &Value) -> Response {
    Json(json!({"success": true, "data": data})).into_response()
}

/// `GET /api/onto/projects`.
pub async fn projects(State(demo): State<Arc<Demo>>, _: AnyUser) -> Response {
    good(&json!({"projects": demo.records().ontology.projects}))
}

/// `GET /api/onto/projects/{id}`: with its tasks.
pub async fn project(
    State(demo): State<Arc<Demo>>,
    _: AnyUser,
    PathOf(id): PathOf<Uuid>,
) -> Result<Response, ApiError> {
    let records = demo.records();
    let project = records.ontology.project(id).ok_or_else(|| ApiError::not_found("project not found"))?;
    let tasks: Vec<&Task> = records.ontology.tasks.iter().filter(|task| task.project_id == id).collect();
    Ok(good(&json!({"project": project, "tasks": tasks})))
}

/// `GET /api/onto/tasks/{id}`.
pub async fn task(State(demo): State<Arc<Demo>>, _: AnyUser, PathOf(id): PathOf<Uuid>) -> Result<Response, ApiError> {
    let records = demo.records();
    let task = records.ontology.tasks.iter().find(|task| task.id == id);
    Ok(good(&json!({"task": task.ok_or_else(|| ApiError::not_found("task not found"))?})))
}

/// A task to be made; what else is said of it is not kept here.
#[derive(Debug, Deserialize)]
pub struct NewTask {
    project_id: Uuid,
    title: String,
    description: Option<String>,
    type_key: Option<String>,
    state_key: Option<String>,
    priority: Option<u8>,
    start_at: Option<Stamp>,
    due_at: Option<Stamp>,
}

/// `POST /api/onto/tasks/create`.
pub async fn create_task(
    State(demo): State<Arc<Demo>>,
    _: AnyUser,
    Body(new): Body<NewTask>,
) -> Result<Response, ApiError> {
    let now = demo.now();
    let mut records = demo.records();
    let Ontology { tasks, .. } = &records.ontology;
    if tasks.len() >= MAX_RECORDS {
        return Err(ApiError::new(Code::Aborted, format!("there are already {MAX_RECORDS} tasks")));
    }
    records.ontology.project(new.project_id).ok_or_else(|| ApiError::not_found("project not found"))?;
    let task = Task {
        id: Uuid::new_v4(),
        project_id: new.project_id,
        title: new.title,
        description: new.description,
        type_key: new.type_key.unwrap_or_else(|| "task.execute".to_owned()),
        state_key: new.state_key.unwrap_or_else(|| "todo".to_owned()),
        priority: new.priority.unwrap_or(NORMAL),
        start_at: new.start_at,
        due_at: new.due_at,
        created_at: now,
        updated_at: now,
    };
    let answer = good(&json!({ "task": task }));
    records.ontology.tasks.push(task);
    Ok(answer)
}

/// `GET /rest/v1/{table}`: the rows that `column=eq.value` lets through, newest first; what else is asked is not looked at. There
/// are projects and tasks; tables of other things are empty.
pub async fn table(
    State(demo): State<Arc<Demo>>,
    _: AnyUser,
    PathOf(table): PathOf<String>,
    params: Params,
) -> Result<Response, ApiError> {
    let limit: usize = params.parse("limit")?.unwrap_or(MOST);
    let records = demo.records();
    let Ontology { projects, tasks } = &records.ontology;
    let rows: Vec<Value> = match table.as_str() {
        "onto_projects" => projects.iter().rev().map(|project| json!(project)).collect(),
        "onto_tasks" => {
            let rows = tasks.iter().rev().map(|task| {
                let mut row = json!(task);
                row["project"] = json!({"name": records.ontology.project(task.project_id).map(|of| &of.name)});
                row
            });
            rows.collect()
        }
        _ => Vec::new(),
    };
    let fits = |row: &Value| {
        let mut columns = row.as_object().into_iter().flatten();
        columns.all(|(column, value)| {
            let wanted = params.text(column).and_then(|filter| filter.strip_prefix("eq."));
            wanted.is_none_or(|wanted| value.as_str() == Some(wanted))
        })
    };
    let rows: Vec<Value> = rows.into_iter().filter(fits).take(limit.min(MOST)).collect();
    Ok(Json(rows).into_response())
}
