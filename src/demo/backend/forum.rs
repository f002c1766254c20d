//! The routes of the forum, each tenant's own. Members read and write, owners and administrators moderate. Who writes is who
//! asks: no body says so.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use serde_json::json;
use uuid::Uuid;

use super::caller::{Manager, Member};
use super::error::{ApiError, Code};
use super::extract::{Body, Params, PathOf};
use super::records::all::MAX_RECORDS;
use super::records::fields::FieldErrors;
use super::records::forum::{
    AuthorType, Category, CategoryStatus, MAX_SLUG, Post, PostStatus, Thread, ThreadStatus, is_slug,
};
use super::state::Demo;

const MAX_NAME: usize = 100;
const MAX_DESCRIPTION: usize = 500;
const MAX_TITLE: usize = 200;
const MAX_CONTENT: usize = 20_000;

/// `GET /v1/forum/categories`.
pub async fn categories(State(demo): State<Arc<Demo>>, member: Member) -> Response {
    let records = demo.records();
    items(records.forum.categories.iter().filter(|category| category.tenant == member.tenant()))
}

/// A new category.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewCategory {
    slug: String,
    name: String,
    #[serde(default)]
    description: String,
}

/// `POST /v1/forum/categories`: answers the category.
pub async fn create_category(
    State(demo): State<Arc<Demo>>,
    Manager(member): Manager,
    Body(body): Body<NewCategory>,
) -> Result<Response, ApiError> {
    let (slug, name) = (body.slug.trim().to_lowercase(), body.name.trim().to_owned());
    let mut errors = FieldErrors::default();
    if !is_slug(&slug) {
        errors.push("slug", format!("must be words of a-z 0-9 with - between, at most {MAX_SLUG} characters"));
    }
    errors.check_length("name", &name, 1..=MAX_NAME);
    errors.check_length("description", &body.description, 0..=MAX_DESCRIPTION);
    errors.finish()?;
    let now = demo.now();
    let mut records = demo.records();
    let rows = &mut records.forum.categories;
    if rows.iter().any(|row| row.tenant == member.tenant() && row.slug == slug) {
        return Err(ApiError::new(Code::AlreadyExists, format!("there is a category {slug:?} already")));
    }
    require_room(rows.len(), "categories")?;
    let category = Category {
        id: Uuid::new_v4(),
        tenant: member.tenant().to_owned(),
        slug,
        name,
        description: body.description,
        status: CategoryStatus::Active,
        inserted_at: now,
        updated_at: now,
    };
    let answer = Json(&category).into_response();
    rows.push(category);
    Ok(answer)
}

/// `GET /v1/forum/threads?category_id=`: newest first.
pub async fn threads(State(demo): State<Arc<Demo>>, member: Member, params: Params) -> Result<Response, ApiError> {
    let category: Option<Uuid> = params.parse("category_id")?;
    let records = demo.records();
    if category.is_some_and(|id| records.forum.category(member.tenant(), id).is_none()) {
        return Err(no_such("category"));
    }
    let threads = records.forum.threads.iter().rev().filter(|thread| thread.tenant == member.tenant());
    Ok(items(threads.filter(|thread| category.is_none_or(|id| thread.category_id == id))))
}

/// A new thread.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewThread {
    category_id: Uuid,
    title: String,
}

/// `POST /v1/forum/threads`: answers the thread.
pub async fn create_thread(
    State(demo): State<Arc<Demo>>,
    member: Member,
    Body(body): Body<NewThread>,
) -> Result<Response, ApiError> {
    let title = body.title.trim().to_owned();
    let mut errors = FieldErrors::default();
    errors.check_length("title", &title, 1..=MAX_TITLE);
    errors.finish()?;
    let now = demo.now();
    let mut records = demo.records();
    let category = records.forum.category(member.tenant(), body.category_id).ok_or_else(|| no_such("category"))?;
    if category.status != CategoryStatus::Active {
        return Err(not_now("the category is archived"));
    }
    require_room(records.forum.threads.len(), "threads")?;
    let thread = Thread {
        id: Uuid::new_v4(),
        tenant: member.tenant().to_owned(),
        category_id: body.category_id,
        title,
        status: ThreadStatus::Open,
        created_by_user_id: member.id().to_owned(),
        inserted_at: now,
        updated_at: now,
    };
    let answer = Json(&thread).into_response();
    records.forum.threads.push(thread);
    Ok(answer)
}

/// `POST /v1/forum/threads/{id}/lock`: answers the thread.
pub async fn lock(State(demo): State<Arc<Demo>>, member: Manager, id: PathOf<Uuid>) -> Result<Response, ApiError> {
    set_thread(&demo, &member, id, ThreadStatus::Locked)
}

/// `POST /v1/forum/threads/{id}/unlock`: answers the thread.
pub async fn unlock(State(demo): State<Arc<Demo>>, member: Manager, id: PathOf<Uuid>) -> Result<Response, ApiError> {
    set_thread(&demo, &member, id, ThreadStatus::Open)
}

fn set_thread(
    demo: &Demo,
    Manager(member): &Manager,
    PathOf(id): PathOf<Uuid>,
    status: ThreadStatus,
) -> Result<Response, ApiError> {
    let mut records = demo.records();
    let thread = records.forum.thread(member.tenant(), id).ok_or_else(|| no_such("thread"))?;
    match thread.status {
        ThreadStatus::Open | ThreadStatus::Locked => thread.status = status,
        ThreadStatus::Archived => return Err(not_now("the thread is archived")),
    }
    thread.updated_at = demo.now();
    Ok(Json(thread).into_response())
}

/// `GET /v1/forum/posts?thread_id=`: oldest first. Hidden and deleted ones are for those who moderate.
pub async fn posts(State(demo): State<Arc<Demo>>, member: Member, params: Params) -> Result<Response, ApiError> {
    let thread: Uuid = params.parse("thread_id")?.ok_or_else(|| ApiError::invalid("thread_id: is required"))?;
    let mut records = demo.records();
    records.forum.thread(member.tenant(), thread).ok_or_else(|| no_such("thread"))?;
    let is_visible = |post: &&Post| member.is_manager() || post.status == PostStatus::Published;
    Ok(items(records.forum.posts.iter().filter(|post| post.thread_id == thread).filter(is_visible)))
}

/// A new post.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewPost {
    thread_id: Uuid,
    content: String,
}

/// `POST /v1/forum/posts`: answers the post.
pub async fn create_post(
    State(demo): State<Arc<Demo>>,
    member: Member,
    Body(body): Body<NewPost>,
) -> Result<Response, ApiError> {
    let mut errors = FieldErrors::default();
    errors.check_length("content", body.content.trim(), 1..=MAX_CONTENT);
    errors.finish()?;
    let now = demo.now();
    let mut records = demo.records();
    let thread = records.forum.thread(member.tenant(), body.thread_id).ok_or_else(|| no_such("thread"))?;
    match thread.status {
        ThreadStatus::Open => {}
        ThreadStatus::Locked => return Err(not_now("the thread is locked")),
        ThreadStatus::Archived => return Err(not_now("the thread is archived")),
    }
    require_room(records.forum.posts.len(), "posts")?;
    let post = Post {
        id: Uuid::new_v4(),
        tenant: member.tenant().to_owned(),
        thread_id: body.thread_id,
        content: body.content.trim().to_owned(),
        status: PostStatus::Published,
        author_type: AuthorType::Human,
        author_id: member.id().to_owned(),
        inserted_at: now,
        updated_at: now,
    };
    let answer = Json(&post).into_response();
    records.forum.posts.push(post);
    Ok(answer)
}

/// `POST /v1/forum/posts/{id}/hide`: answers the post.
pub async fn hide(State(demo): State<Arc<Demo>>, member: Manager, id: PathOf<Uuid>) -> Result<Response, ApiError> {
    set_post(&demo, &member, id, PostStatus::Hidden)
}

/// `POST /v1/forum/posts/{id}/unhide`: answers the post.
pub async fn unhide(State(demo): State<Arc<Demo>>, member: Manager, id: PathOf<Uuid>) -> Result<Response, ApiError> {
    set_post(&demo, &member, id, PostStatus::Published)
}

/// `POST /v1/forum/posts/{id}/delete`: answers the post, which stays as a row.
pub async fn delete(State(demo): State<Arc<Demo>>, member: Manager, id: PathOf<Uuid>) -> Result<Response, ApiError> {
    set_post(&demo, &member, id, PostStatus::Deleted)
}

fn set_post(
    demo: &Demo,
    Manager(member): &Manager,
    PathOf(id): PathOf<Uuid>,
    status: PostStatus,
) -> Result<Response, ApiError> {
    let mut records = demo.records();
    let post = records.forum.post(member.tenant(), id).ok_or_else(|| no_such("post"))?;
    if post.status == PostStatus::Deleted && status != PostStatus::Deleted {
        return Err(not_now("the post is deleted"));
    }
    post.status = status;
    post.updated_at = demo.now();
    Ok(Json(post).into_response())
}

fn items<T: Serialize>(rows: impl Iterator<Item = T>) -> Response {
    Json(json!({ "items": rows.collect::<Vec<_>>() })).into_response()
}

fn require_room(rows: usize, what: &str) -> Result<(), ApiError> {
    match rows < MAX_RECORDS {
        true => Ok(()),
        false => Err(ApiError::new(Code::Aborted, format!("there are already {MAX_RECORDS} {what}"))),
    }
}

fn no_such(what: &str) -> ApiError {
    ApiError::not_found(format!("{what} not found"))
}

fn not_now(why: &str) -> ApiError {
    ApiError::new(Code::FailedPrecondition, why)
}
