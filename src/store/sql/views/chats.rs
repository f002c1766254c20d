//! Conversations under whole numbers: given before the first message, listed and read by them.

use super::SqlStore;
use super::chat::chat_runs;
use super::heads::count;
use crate::agent::ports::chats::{ChatHead, ChatView, Chats};
use crate::chat::ids::ConversationId;
use crate::chat::message::Message;
use crate::store::database::Connection;
use crate::store::fault::Fault;
use crate::store::record_error::RecordError;
use crate::store::scope::{Reach, Scope, original, storable};
use crate::store::statement::query;
use crate::store::transcript;

/// A row of a list.
#[derive(sqlx::FromRow)]
struct HeadRow {
    number: i64,
    tenant: String,
    user_id: String,
    /// The user's name in front ends.
    user_claim: Option<String>,
    id: String,
    title: Option<String>,
    created_at: i64,
    updated_at: i64,
    /// The first message, where there is no title.
    first: Option<String>,
    /// The newest run's number.
    newest: Option<i64>,
    /// How many messages a user sees, where that run knows.
    seen: Option<i64>,
}

/// The chats `h` of which `$whose` is true, each with its conversation `c`.
macro_rules! chosen {
    ($whose:literal) => {
        concat!(
            "FROM chats h JOIN conversations c
                 ON c.tenant = h.tenant AND c.user_id = h.user_id AND c.id = h.conversation WHERE ",
            $whose
        )
    };
}

/// The rows of those chats; `$which` goes on with the choice, and orders and cuts it.
macro_rules! rows {
    ($whose:literal, $($which:literal),+) => {
        concat!(
            // The last message is the newest run's answer, or what it answers.
            "SELECT l.number, l.tenant, l.user_id, l.user_claim, l.id, l.title, l.created_at, l.updated_at,
                 CASE WHEN l.title IS NULL THEN (
                     SELECT m.body FROM messages m WHERE m.tenant = l.tenant AND m.user_id = l.user_id
                         AND m.conversation = l.id AND m.run_seq = 0 AND m.seq = 0) END AS first,
                 (SELECT r.run_seq FROM runs r WHERE r.tenant = l.tenant AND r.user_id = l.user_id
                      AND r.conversation = l.id ORDER BY r.run_seq DESC LIMIT 1) AS newest,
                 (SELECT r.seen_before + r.seen_own FROM runs r WHERE r.tenant = l.tenant AND r.user_id = l.user_id
                      AND r.conversation = l.id ORDER BY r.run_seq DESC LIMIT 1) AS seen
             FROM (SELECT h.number, h.tenant, h.user_id, h.user_claim, c.id, c.title, c.created_at,
                 @greatest(c.updated_at, COALESCE((SELECT r.finished_at FROM runs r WHERE r.tenant = c.tenant
                     AND r.user_id = c.user_id AND r.conversation = c.id ORDER BY r.run_seq DESC LIMIT 1), 0)) AS updated_at ",
            chosen!($whose),
            $($which,)+
            ") AS l ORDER BY l.updated_at DESC, l.number DESC"
        )
    };
}

/// The statements about some chats. One for each kind of choice, so that each is planned for it.
struct Statements {
    /// How many they are.
    count: &'static str,
    /// A part of them: how many at most, after how many.
    part: &'static str,
    /// The one of a number.
    one: &'static str,
}

/// The statements of the chats of which `$whose` is true; `$next` and `$after` are the parameters behind its own.
macro_rules! statements {
    ($whose:literal, $next:literal, $after:literal) => {
        Statements {
            count: concat!("SELECT COUNT(*) ", chosen!($whose), " AND c.unlisted = 0"),
            part: rows!(
                $whose,
                " AND c.unlisted = 0 ORDER BY updated_at DESC, number DESC LIMIT ",
                $next,
                " OFFSET ",
                $after
            ),
            one: rows!($whose, " AND h.number = ", $next),
        }
    };
}

const OF_TENANT: Statements = statements!("h.tenant = $1", "$2", "$3");
const OF_USER: Statements = statements!("h.tenant = $1 AND h.user_id = $2", "$3", "$4");
const OF_APP: Statements = statements!("h.tenant = $1 AND h.user_id = $2 AND h.app = $3", "$4", "$5");

/// The choice of chats: the statements, and their first parameters.
struct Choice(Statements, Vec<String>);

impl Choice {
    fn from_filter(of: Chats<'_>) -> Self {
        match of {
            Chats::Own { owner, app } => {
                let scope = Scope::from(owner);
                let (tenant, user) = (scope.tenant().to_owned(), scope.user().to_owned());
                match app {
                    Some(app) => Self(OF_APP, vec![tenant, user, storable(app).into_owned()]),
                    None => Self(OF_USER, vec![tenant, user]),
                }
            }
            Chats::Tenant { tenant, user: Some(user) } => {
                Self(OF_USER, vec![storable(tenant).into_owned(), storable(user).into_owned()])
            }
            Chats::Tenant { tenant, user: None } => Self(OF_TENANT, vec![storable(tenant).into_owned()]),
        }
    }
}

impl SqlStore {
    pub(super) async fn try_number(
        &self,
        scope: &Scope,
        known_as: Option<&str>,
        conversation: &ConversationId,
        app: &str,
    ) -> Result<i64, Fault> {
        // Most have theirs, and a read blocks no writer.
        let known = number_of(&mut self.database.reading(Reach::User(scope)).await?, scope, conversation).await?;
        if let Some((number, kept)) = known {
            if known_as.is_some() && kept.as_deref() != known_as.map(storable).as_deref() {
                let mut transaction = self.database.write(Reach::User(scope)).await?;
                query("UPDATE chats SET user_claim = $1 WHERE tenant = $2 AND user_id = $3 AND number = $4")
                    .bind((known_as.map(storable), scope, number))
                    .execute(&mut transaction)
                    .await?;
                transaction.commit().await?;
            }
            return Ok(number);
        }
        let mut transaction = self.database.write(Reach::User(scope)).await?;
        let inserted = query(
            "INSERT INTO chats (tenant, user_id, conversation, app, created_at, user_claim) VALUES ($1, $2, $3, $4, $5, $6)
             ON CONFLICT (tenant, user_id, conversation) DO NOTHING RETURNING number",
        )
        .bind((scope, conversation.as_str(), storable(app), self.clock.now_ms(), known_as.map(storable)))
        .fetch_optional_value(&mut transaction)
        .await?;
        // Another request may have given it one meanwhile.
        let number = match inserted {
            Some(number) => number,
            None => number_of(&mut transaction, scope, conversation).await?.ok_or(sqlx::Error::RowNotFound)?.0,
        };
        transaction.commit().await?;
        Ok(number)
    }

    pub(super) async fn try_numbered(&self, scope: &Scope, number: i64) -> Result<Option<ConversationId>, Fault> {
        let id: Option<String> =
            query("SELECT conversation FROM chats WHERE tenant = $1 AND user_id = $2 AND number = $3")
                .bind((scope, number))
                .fetch_optional_value(&mut self.database.reading(Reach::User(scope)).await?)
                .await?;
        Ok(id.map(|id| ConversationId::parse(&id)).transpose().map_err(RecordError::from)?)
    }

    pub(super) async fn try_chats(
        &self,
        of: Chats<'_>,
        limit: u32,
        offset: u32,
    ) -> Result<(Vec<ChatHead>, u64), Fault> {
        let scope = scope_of(of);
        let mut transaction = self.database.read(reach(of, &scope)).await?;
        let called = match of {
            Chats::Tenant { tenant, user: Some(user) } => user_called(&mut transaction, tenant, user).await?,
            Chats::Tenant { user: None, .. } | Chats::Own { .. } => None,
        };
        let of = match (of, &called) {
            (Chats::Tenant { tenant, .. }, Some(user)) => Chats::Tenant { tenant, user: Some(user) },
            (of, _) => of,
        };
        let Choice(statements, whose) = Choice::from_filter(of);
        let count = whose.iter().fold(query(statements.count), |count, name| count.bind(name));
        let total: i64 = count.fetch_value(&mut transaction).await?;
        let part = whose.iter().fold(query(statements.part), |part, name| part.bind(name));
        let part = part.bind((i64::from(limit), i64::from(offset)));
        let rows: Vec<HeadRow> = part.fetch_all(&mut transaction).await?;
        let mut heads = Vec::with_capacity(rows.len());
        for row in rows {
            heads.push(head(&mut transaction, row).await?.0);
        }
        Ok((heads, u64::try_from(total).unwrap_or_default()))
    }

    pub(super) async fn try_chat(&self, of: Chats<'_>, number: i64) -> Result<Option<ChatView>, Fault> {
        let Choice(statements, whose) = Choice::from_filter(of);
        let scope = scope_of(of);
        let mut transaction = self.database.read(reach(of, &scope)).await?;
        let one = whose.iter().fold(query(statements.one), |one, name| one.bind(name));
        let row: Option<HeadRow> = one.bind(number).fetch_optional(&mut transaction).await?;
        let Some(row) = row else { return Ok(None) };
        let (head, scope, id) = head(&mut transaction, row).await?;
        let runs = chat_runs(&mut transaction, &scope, &id, i64::MAX).await?;
        Ok(Some(ChatView { head, runs }))
    }
}

/// The scope of chats: of a whole tenant's, only the tenant counts.
fn scope_of(of: Chats<'_>) -> Scope {
    match of {
        Chats::Own { owner, app: _ } => Scope::from(owner),
        Chats::Tenant { tenant, user } => {
            let user = user.map(storable).unwrap_or_default();
            Scope::of_row(storable(tenant).into_owned(), user.into_owned())
        }
    }
}

/// A tenant's user may be named by a claim, whom only the tenant's rows tell.
fn reach<'a>(of: Chats<'_>, scope: &'a Scope) -> Reach<'a> {
    match of {
        Chats::Own { .. } => Reach::User(scope),
        Chats::Tenant { .. } => Reach::Tenant(scope),
    }
}

/// The user of a tenant whom front ends call so, where there is one: the one who began the newest chat under that name.
async fn user_called(connection: &mut dyn Connection, tenant: &str, name: &str) -> Result<Option<String>, sqlx::Error> {
    let user: Option<String> =
        query("SELECT user_id FROM chats WHERE tenant = $1 AND user_claim = $2 ORDER BY number DESC LIMIT 1")
            .bind((storable(tenant), storable(name)))
            .fetch_optional_value(connection)
            .await?;
    Ok(user.map(|user| original(&user).into_owned()))
}

/// The number that a conversation has, and what its user was called by then.
async fn number_of(
    connection: &mut dyn Connection,
    scope: &Scope,
    conversation: &ConversationId,
) -> Result<Option<(i64, Option<String>)>, sqlx::Error> {
    query("SELECT number, user_claim FROM chats WHERE tenant = $1 AND user_id = $2 AND conversation = $3")
        .bind((scope, conversation.as_str()))
        .fetch_optional(connection)
        .await
}

/// The head of a row, and where its conversation is.
async fn head(connection: &mut dyn Connection, row: HeadRow) -> Result<(ChatHead, Scope, String), Fault> {
    let scope = Scope::of_row(row.tenant, row.user_id);
    let seen = count(connection, &scope, &row.id, (row.newest, row.seen)).await?;
    let title = match (row.title, row.first) {
        (Some(title), _) => original(&title).into_owned(),
        (None, Some(body)) => match transcript::decode("user", &body)? {
            Message::User(user) => user.text,
            Message::Assistant(_) | Message::ToolResults(_) => String::new(),
        },
        (None, None) => String::new(),
    };
    let owner = scope.owner();
    let head = ChatHead {
        number: row.number,
        owner,
        known_as: row.user_claim.map(|name| original(&name).into_owned()),
        title,
        created_at_ms: row.created_at,
        updated_at_ms: row.updated_at,
        message_count: u64::try_from(seen).unwrap_or_default(),
    };
    Ok((head, scope, row.id))
}
