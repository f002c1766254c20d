//! `GET /v1/agent/search`: the caller's conversations by the words of their titles and messages.

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::{Extension, Json};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Services;
use super::auth::Authenticated;
use super::conversation_views::{HeadBody, role};
use super::conversations::{DEFAULT_LIMIT, page_of};
use super::problem::Problem;
use super::share::Slot;
use crate::agent::ports::search::{Found, Hit, HitMessage, Piece};
use crate::bounded::memory::Kind;
use crate::chat::day::rfc3339 as time;

/// The longest query, in characters.
const QUERY_CHARS: usize = 400;

/// The most items of an answer: each is looked up in its conversation.
const MOST: u32 = 50;

/// What a search takes of its user's memory.
const SEARCH_BYTES: usize = 1 << 20;

#[derive(Deserialize)]
pub(super) struct Asked {
    q: Option<String>,
    limit: Option<String>,
    cursor: Option<String>,
}

/// What was found.
#[derive(Serialize, ToSchema)]
#[schema(as = SearchResults)]
pub(super) struct FoundBody {
    items: Vec<HitBody>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
    /// Whether all was looked at. `false` where so much is new to the index that the same search knows more of it when it is
    /// made again.
    complete: bool,
}

/// A conversation that was found.
#[derive(Serialize, ToSchema)]
#[schema(as = SearchHit)]
struct HitBody {
    conversation: HeadBody,
    /// Its title in pieces.
    title: Vec<PieceBody>,
    /// Its messages that have all of the words, and its title where that has them.
    matches: u64,
    /// When the newest of them was said.
    at: String,
    /// The newest of its messages with all of the words; absent where only its title has them.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<MessageBody>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = SearchMessage)]
struct MessageBody {
    id: String,
    role: &'static str,
    /// The part of it around the first word, on one line, in pieces.
    snippet: Vec<PieceBody>,
}

/// A piece of a text: joined, they are it.
#[derive(Serialize, ToSchema)]
#[schema(as = SearchPiece)]
struct PieceBody {
    text: String,
    /// Whether it is what was looked for.
    hit: bool,
}

fn pieces(pieces: Vec<Piece>) -> Vec<PieceBody> {
    pieces.into_iter().map(|Piece { text, is_hit }| PieceBody { text, hit: is_hit }).collect()
}

impl HitBody {
    fn from_hit(hit: Hit) -> Self {
        let Hit { conversation, title, matches, at_ms, message } = hit;
        let message = message.map(|HitMessage { id, role: of, snippet }| MessageBody {
            id: id.to_string(),
            role: role(of),
            snippet: pieces(snippet),
        });
        let (conversation, at) = (HeadBody::from_head(conversation), time(at_ms));
        Self { conversation, title: pieces(title), matches, at, message }
    }
}

/// 200 with the conversations that have all of the words in one message, or in their title.
#[utoipa::path(
    get,
    path = "/v1/agent/search",
    operation_id = "searchConversations",
    tag = "Conversations",
    summary = "Find conversations",
    description = "The caller's own, archived ones too, that have a message or a title with all words of the query; that with the newest such message first. Words are compared without regard to capitals and accents, and found as beginnings of longer ones; texts in Chinese, Japanese and Thai by pairs of characters. A query has no other syntax.",
    params(
        ("q" = String, Query, description = "What is looked for: 1 to 400 characters.", max_length = 400),
        ("limit" = Option<String>, Query, description = "How many, 1 to 50; else 20.", pattern = "^([1-9]|[1-4][0-9]|50)?$"),
        ("cursor" = Option<String>, Query, description = "What the last part named as `next_cursor`."),
    ),
    responses(
        (status = 200, description = "A part of what was found.", body = FoundBody),
        (status = 400, description = "`invalid_request`, `cursor_invalid`: no query, or one that is too long; a limit that is none; a cursor that a search has not given."),
    ),
)]
pub(super) async fn search(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    Extension(slot): Extension<Slot>,
    asked: Result<Query<Asked>, QueryRejection>,
) -> Result<Json<FoundBody>, Problem> {
    let Query(Asked { q, limit, cursor }) =
        asked.map_err(|_| Problem::bad_request("q, limit and cursor must each be given once at most"))?;
    let query = q.filter(|q| !q.trim().is_empty() && q.chars().count() <= QUERY_CHARS);
    let too_long = || Problem::bad_request(format!("q must have 1 to {QUERY_CHARS} characters"));
    let query = query.ok_or_else(too_long)?;
    let page = page_of((limit, cursor), DEFAULT_LIMIT, MOST)?;
    let _share = slot.bytes(SEARCH_BYTES)?;
    let mut held = services.intake.memory().reserve(Kind::Export, 0)?;
    let Found { page, is_complete } = services.search.search(&caller.owner, &query, page, &mut held).await?;
    let items = page.items.into_iter().map(HitBody::from_hit).collect();
    Ok(Json(FoundBody { items, next_cursor: page.next, complete: is_complete }))
}
