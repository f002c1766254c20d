//! A small REST backend, so that a newcomer has something to talk to: in memory, seeded from `config/demo/*.json`, reached
//! over loopback HTTP with the caller's own bearer like any other backend. All its routes are on this page.
//!
//! Who may do what: a token without roles counts as `USER`; saving a rule, every alert of the house and introspection need
//! `ADMIN`; the rest is open to both. A dry run changes nothing, so `USER` may do it too: upstream asks for `ADMIN` there,
//! and a plain user's previews fail. Likewise an inactive rule is listed and found here, or "deactivate it" would be followed
//! by "not found".
//!
//! Forum and packages are each tenant's own, and have other roles: `member`, and `owner` and `admin`, who moderate, make
//! categories and install. Their writes honour `Idempotency-Key`. The token of `[backend.service]` is taken too: who asks is
//! then what `X-Switchboard-Tenant`, `-Actor` and `-Actor-Roles` say, which from all others mean nothing.
//!
//! **Invariant:** nothing is written outside this process, nothing is read but the seed, and the number of rows is bounded.
//! All tenants see the same records but for forum and installations: it is a demo.

mod alerts;
mod caller;
mod doors;
mod error;
mod etag;
mod extract;
mod forum;
mod idempotency;
mod introspection;
mod ontology;
mod packages;
mod page;
mod people;
mod records;
mod reference;
mod research;
mod rules;
mod state;
mod tables;

use std::future::Future;
use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post, put};
use tokio::net::TcpListener;

use crate::agent::ports::clock::Clock;
pub use doors::Doors;
use error::{ApiError, Code};
pub use records::seed::{FILES, Seed, SeedError};
use state::Demo;

/// One mebibyte: several times the largest rule that a person draws.
const BODY_LIMIT_BYTES: usize = 1024 * 1024;

/// The whole API below its root, with `seed`'s records. `doors` knows who asks, `clock` dates what is saved.
pub fn router(seed: Seed, doors: Doors, clock: Arc<dyn Clock>) -> Router {
    let demo = Arc::new(Demo::new(seed, doors, clock));
    let once = from_fn_with_state(Arc::clone(&demo), idempotency::once);
    Router::new()
        .nest("/v1/workflow", workflow())
        .nest("/v1/data", data())
        .nest("/v1/introspection", introspection_routes())
        .nest("/v1/research", research_routes())
        .nest("/v1/forum", forum_routes().route_layer(once.clone()))
        .nest("/v1/packages", package_routes().route_layer(once))
        .nest("/api/onto", ontology_routes())
        .route("/rest/v1/{table}", get(ontology::table))
        .route("/v1/core/users/{id}", get(people::user))
        .route("/v1/core/roles/{id}", get(people::role))
        .fallback(async || ApiError::new(Code::NotFound, "no such route"))
        .method_not_allowed_fallback(async || ApiError::new(Code::Unimplemented, "no such method on this route"))
        .layer(DefaultBodyLimit::max(BODY_LIMIT_BYTES))
        .with_state(demo)
}

fn workflow() -> Router<Arc<Demo>> {
    Router::new()
        .route("/rules", get(rules::read::list))
        .route("/rules/full", post(rules::save::create))
        .route("/rules/{id}", get(rules::read::one))
        .route("/rules/{id}/actions", get(rules::read::actions))
        .route("/rules/{id}/edges", get(rules::read::edges))
        .route("/rules/{id}/full", put(rules::save::update))
        .route("/rules/{id}/duplicate", post(rules::save::duplicate))
        .route("/trigger-types", get(reference::trigger_types))
        .route("/entities", get(reference::entities))
        .route("/entity-types", get(reference::entity_types))
        .route("/action-types", get(reference::action_types))
        .route("/alerts", get(alerts::all))
        .route("/alerts/mine", get(alerts::mine))
        .route("/alerts/{id}", get(alerts::one))
        .route("/alerts/{id}/acknowledge", post(alerts::acknowledge))
        .route("/alerts/{id}/dismiss", post(alerts::dismiss))
}

fn data() -> Router<Arc<Demo>> {
    Router::new()
        .route("/", post(tables::create))
        .route("/{id}", put(tables::update))
        .route("/validate", post(tables::validate))
        .route("/id/{id}", get(tables::by_id))
        .route("/name/{name}", get(tables::by_name))
        .route("/configs/all", get(tables::all))
}

fn introspection_routes() -> Router<Arc<Demo>> {
    Router::new()
        .route("/schemas", get(introspection::schemas))
        .route("/schemas/{schema}/tables", get(introspection::tables))
        .route("/tables/{schema}/{table}/columns", get(introspection::columns))
        .route("/tables/{schema}/{table}/relationships", get(introspection::relationships))
}

fn research_routes() -> Router<Arc<Demo>> {
    Router::new()
        .route("/articles", get(research::articles))
        .route("/articles/{id}", get(research::article))
        .route("/articles/scan", post(research::scan))
        .route("/streams", get(research::streams))
        .route("/streams/{id}", get(research::stream))
        .route("/streams/{id}/archive", post(research::archive))
        .route("/reports", get(research::reports))
        .route("/reports/{id}", get(research::report).delete(research::delete_report))
}

fn ontology_routes() -> Router<Arc<Demo>> {
    Router::new()
        .route("/projects", get(ontology::projects))
        .route("/projects/{id}", get(ontology::project))
        .route("/tasks/create", post(ontology::create_task))
        .route("/tasks/{id}", get(ontology::task))
}

fn forum_routes() -> Router<Arc<Demo>> {
    Router::new()
        .route("/categories", get(forum::categories).post(forum::create_category))
        .route("/threads", get(forum::threads).post(forum::create_thread))
        .route("/threads/{id}/lock", post(forum::lock))
        .route("/threads/{id}/unlock", post(forum::unlock))
        .route("/posts", get(forum::posts).post(forum::create_post))
        .route("/posts/{id}/hide", post(forum::hide))
        .route("/posts/{id}/unhide", post(forum::unhide))
        .route("/posts/{id}/delete", post(forum::delete))
}

fn package_routes() -> Router<Arc<Demo>> {
    Router::new()
        .route("/", get(packages::list))
        .route("/installations", get(packages::installations))
        .route("/{slug}/install", post(packages::install))
        .route("/{slug}/uninstall", post(packages::uninstall))
}

/// Serves `router` on `listener` until `shutdown` is done and the open requests are answered.
///
/// Meant for loopback: it sets no timeouts, since its only client is this process.
///
/// # Errors
/// When the listener fails.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    axum::serve(listener, router).with_graceful_shutdown(shutdown).await
}
