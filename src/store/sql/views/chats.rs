//! Conversations under whole numbers: given before anything is said, listed and read by them.

use std::collections::HashMap;

use super::heads::count;
use super::{Connection, SqlStore, all_payloads};
use crate::agent::ports::chats::{ChatHead, ChatRun, ChatView, Chats};
use crate::agent::ports::store::{CONTINUE_REQUEST, DECISION_ON_CALL};
use crate::chat::caller::Owner;
use crate::chat::ids::{ConversationId, RunId};
use crate::chat::message::Message;
use crate::chat::payload::Payload;
use crate::store::answer::decode_answer;
use crate::store::fault::Fault;
use crate::store::record::{RunRow, run_columns};
use crate::store::scope::{Scope, original, storable};
use crate::store::transcript::{self, RecordError};

/// A row of a list.
#[derive(sqlx::FromRow)]
struct HeadRow {
    number: i64,
    tenant: String,
    user_id: String,
    id: String,
    title: Option<String>,
    created_at: i64,
    updated_at: i64,
    /// The first message, where there is no title.
    first: Option<String>,
    /// The newest run's place.
    newest: Option<i64>,
    /// How many messages a user sees, where that run knows.
    seen: Option<i64>,
}

/// A run of a chat.
#[derive(sqlx::FromRow)]
struct ChatRow {
    #[sqlx(flatten)]
    run: RunRow,
    run_seq: i64,
    /// Up to which message it counts, where not all of it does.
    upto: Option<i64>,
    answer: Option<String>,
    diagnostics: Option<String>,
    context: Option<String>,
}

/// The chats `h` of the tenant `$1`, of the user `$2` and the application `$3` where they are not `NULL`, each with its
/// conversation `c`.
macro_rules! chosen {
    () => {
        "FROM chats h JOIN conversations c ON c.tenant = h.tenant AND c.user_id = h.user_id AND c.id = h.conversation
         WHERE h.tenant = $1 AND (CAST($2 AS TEXT) IS NULL OR h.user_id = $2)
             AND (CAST($3 AS TEXT) IS NULL OR h.app = $3)"
    };
}

/// The rows of those chats; `$which` goes on with the choice, and orders and cuts it.
macro_rules! rows {
    ($which:expr) => {
        concat!(
            "SELECT l.number, l.tenant, l.user_id, l.id, l.title, l.created_at, l.updated_at,
                 CASE WHEN l.title IS NULL THEN (
                     SELECT m.body FROM messages m WHERE m.tenant = l.tenant AND m.user_id = l.user_id
                         AND m.conversation = l.id AND m.run_seq = 0 AND m.seq = 0) END AS first,
                 (SELECT r.run_seq FROM runs r WHERE r.tenant = l.tenant AND r.user_id = l.user_id
                      AND r.conversation = l.id ORDER BY r.run_seq DESC LIMIT 1) AS newest,
                 (SELECT r.seen_before + r.seen_own FROM runs r WHERE r.tenant = l.tenant AND r.user_id = l.user_id
                      AND r.conversation = l.id ORDER BY r.run_seq DESC LIMIT 1) AS seen
             FROM (SELECT h.number, h.tenant, h.user_id, c.id, c.title, c.created_at, c.updated_at ",
            chosen!(),
            $which,
            ") AS l ORDER BY l.updated_at DESC, l.number DESC"
        )
    };
}

/// Whose chats, as the statements take it: tenant, user, application.
struct Choice(String, Option<String>, Option<String>);

impl Choice {
    fn of(of: Chats<'_>) -> Self {
        match of {
            Chats::Own { owner, app } => {
                let Scope { tenant, user } = Scope::from(owner);
                Self(tenant, Some(user), app.map(|app| storable(app).into_owned()))
            }
            Chats::Tenant { tenant, user } => {
                Self(storable(tenant).into_owned(), user.map(|user| storable(user).into_owned()), None)
            }
        }
    }
}

impl SqlStore {
    pub(super) async fn try_number(
        &self,
        scope: &Scope,
        conversation: &ConversationId,
        app: &str,
    ) -> Result<i64, Fault> {
        let mut transaction = self.write().await?;
        sqlx::query(
            "INSERT INTO chats (tenant, user_id, conversation, app, created_at) VALUES ($1, $2, $3, $4, $5)
             ON CONFLICT (tenant, user_id, conversation) DO NOTHING",
        )
        .bind(&scope.tenant)
        .bind(&scope.user)
        .bind(conversation.as_str())
        .bind(storable(app))
        .bind(self.clock.now_ms())
        .execute(&mut *transaction)
        .await?;
        let number =
            sqlx::query_scalar("SELECT number FROM chats WHERE tenant = $1 AND user_id = $2 AND conversation = $3")
                .bind(&scope.tenant)
                .bind(&scope.user)
                .bind(conversation.as_str())
                .fetch_one(&mut *transaction)
                .await?;
        transaction.commit().await?;
        Ok(number)
    }

    pub(super) async fn try_numbered(&self, scope: &Scope, number: i64) -> Result<Option<ConversationId>, Fault> {
        let id: Option<String> =
            sqlx::query_scalar("SELECT conversation FROM chats WHERE tenant = $1 AND user_id = $2 AND number = $3")
                .bind(&scope.tenant)
                .bind(&scope.user)
                .bind(number)
                .fetch_optional(self.readers())
                .await?;
        Ok(id.map(|id| ConversationId::parse(&id)).transpose().map_err(RecordError::from)?)
    }

    pub(super) async fn try_chats(
        &self,
        of: Chats<'_>,
        limit: u32,
        offset: u32,
    ) -> Result<(Vec<ChatHead>, u64), Fault> {
        let Choice(tenant, user, app) = Choice::of(of);
        let mut transaction = self.read().await?;
        let total: i64 = sqlx::query_scalar(concat!("SELECT COUNT(*) ", chosen!()))
            .bind(&tenant)
            .bind(&user)
            .bind(&app)
            .fetch_one(&mut *transaction)
            .await?;
        let rows: Vec<HeadRow> = sqlx::query_as(rows!(" ORDER BY c.updated_at DESC, h.number DESC LIMIT $4 OFFSET $5"))
            .bind(tenant)
            .bind(user)
            .bind(app)
            .bind(i64::from(limit))
            .bind(i64::from(offset))
            .fetch_all(&mut *transaction)
            .await?;
        let mut heads = Vec::with_capacity(rows.len());
        for row in rows {
            heads.push(head(&mut transaction, row).await?.0);
        }
        Ok((heads, u64::try_from(total).unwrap_or_default()))
    }

    pub(super) async fn try_chat(&self, of: Chats<'_>, number: i64) -> Result<Option<ChatView>, Fault> {
        let Choice(tenant, user, app) = Choice::of(of);
        let mut transaction = self.read().await?;
        let row: Option<HeadRow> = sqlx::query_as(rows!(" AND h.number = $4"))
            .bind(tenant)
            .bind(user)
            .bind(app)
            .bind(number)
            .fetch_optional(&mut *transaction)
            .await?;
        let Some(row) = row else { return Ok(None) };
        let (head, scope, id) = head(&mut transaction, row).await?;
        let mut said = messages(&mut transaction, &scope, &id).await?;
        let mut payloads: HashMap<RunId, Vec<Payload>> = HashMap::new();
        for (run, payload) in all_payloads(&mut transaction, &scope, &id).await? {
            payloads.entry(run).or_default().push(payload);
        }
        let mut chat_runs = Vec::new();
        for row in runs(&mut transaction, &scope, &id).await? {
            let own = said.remove(&row.run_seq).unwrap_or_default();
            let of_run = payloads.remove(&row.run.id()?).unwrap_or_default();
            chat_runs.push(chat_run(row, own, of_run)?);
        }
        Ok(Some(ChatView { head, runs: chat_runs }))
    }
}

/// The head of a row, and where its conversation is.
async fn head(connection: &mut Connection, row: HeadRow) -> Result<(ChatHead, Scope, String), Fault> {
    let scope = Scope { tenant: row.tenant, user: row.user_id };
    let seen = count(connection, &scope, &row.id, (row.newest, row.seen)).await?;
    let title = match (row.title, row.first) {
        (Some(title), _) => original(&title).into_owned(),
        (None, Some(body)) => match transcript::decode("user", &body)? {
            Message::User(user) => user.text,
            Message::Assistant(_) | Message::ToolResults(_) => String::new(),
        },
        (None, None) => String::new(),
    };
    let owner = Owner { tenant: original(&scope.tenant).into_owned(), user: original(&scope.user).into_owned() };
    let head = ChatHead {
        number: row.number,
        owner,
        title,
        created_at_ms: row.created_at,
        updated_at_ms: row.updated_at,
        message_count: u64::try_from(seen).unwrap_or_default(),
    };
    Ok((head, scope, row.id))
}

fn chat_run(row: ChatRow, messages: Vec<Message>, payloads: Vec<Payload>) -> Result<ChatRun, Fault> {
    let ChatRow { run, run_seq, upto, answer, diagnostics, context } = row;
    let run = run.into_record()?;
    let by_server = run.continues.is_some() && messages.first().is_some_and(is_by_server);
    // Of a run that counts only in part, nobody knows which part of its answer does.
    let answer = answer.filter(|_| upto.is_none());
    let answer = answer.map(|body| decode_answer(&body, diagnostics.as_deref())).transpose()?;
    Ok(ChatRun {
        run_seq,
        state: run.state,
        error: run.error,
        messages,
        by_server,
        answer,
        payloads,
        context: context.map(|text| serde_json::from_str(&text)).transpose().map_err(RecordError::json("context"))?,
        started_at_ms: run.created_at_ms,
        finished_at_ms: run.finished_at_ms,
    })
}

/// Whether the message that begins a run which goes on with another one is ours; see [`super::is_seen`].
fn is_by_server(message: &Message) -> bool {
    match message {
        Message::User(user) => user.text == CONTINUE_REQUEST || user.text.starts_with(DECISION_ON_CALL),
        Message::Assistant(_) | Message::ToolResults(_) => false,
    }
}

/// The runs of the newest branch, oldest first.
async fn runs(connection: &mut Connection, scope: &Scope, id: &str) -> Result<Vec<ChatRow>, sqlx::Error> {
    sqlx::query_as(concat!(
        with_path!("(SELECT MAX(run_seq) FROM runs WHERE tenant = $1 AND user_id = $2 AND conversation = $3)"),
        "SELECT ",
        run_columns!(),
        ", r.run_seq, p.upto, d.answer, d.diagnostics, d.context FROM path p
         JOIN runs r ON r.tenant = $1 AND r.user_id = $2 AND r.conversation = $3 AND r.run_seq = p.run_seq
         LEFT JOIN run_details d ON d.run_id = r.id
         ORDER BY r.run_seq",
    ))
    .bind(&scope.tenant)
    .bind(&scope.user)
    .bind(id)
    .fetch_all(connection)
    .await
}

/// The messages of the newest branch by their runs.
async fn messages(connection: &mut Connection, scope: &Scope, id: &str) -> Result<HashMap<i64, Vec<Message>>, Fault> {
    let rows: Vec<(i64, String, String)> = sqlx::query_as(concat!(
        with_path!("(SELECT MAX(run_seq) FROM runs WHERE tenant = $1 AND user_id = $2 AND conversation = $3)"),
        "SELECT m.run_seq, m.kind, m.body ",
        from_path!(),
        "ORDER BY m.run_seq, m.seq",
    ))
    .bind(&scope.tenant)
    .bind(&scope.user)
    .bind(id)
    .fetch_all(connection)
    .await?;
    let mut messages: HashMap<i64, Vec<Message>> = HashMap::new();
    for (run_seq, kind, body) in rows {
        messages.entry(run_seq).or_default().push(transcript::decode(&kind, &body)?);
    }
    Ok(messages)
}
