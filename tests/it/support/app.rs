//! The whole product in this process: real sockets, its own database file, settings as an operator would give them.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection, SqliteConnection};
use switchboard::app::App;
use switchboard::config::{Config, Sources};
use switchboard::http::auth::{AuthSetupError, Claims};
use tempfile::TempDir;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::frames::{self, Frame};
use super::sqlite;

/// Ada, whom the demo backend knows.
pub const ADA: &str = "11111111-1111-4111-8111-111111111111";

/// The "Low Stock Alert" of the demo backend.
pub const LOW_STOCK: &str = "550e8400-e29b-41d4-a716-446655440000";

/// A running product and a client for it.
pub struct TestApp {
    pub address: SocketAddr,
    /// Ada's token, with the roles USER and ADMIN.
    pub token: String,
    pub http: reqwest::Client,
    sign: Sign,
    stop: Option<oneshot::Sender<()>>,
    serving: Option<JoinHandle<()>>,
    data: TempDir,
}

/// The file of its database, in its folder.
const DATABASE: &str = "test.db";

/// How long most tokens live.
const LIFE: Duration = Duration::from_secs(600);

/// Signs a token of a user, a tenant and roles, which lives so long.
type Sign = Box<dyn Fn(&str, Option<&str>, &[&str], Duration) -> String + Send + Sync>;

/// The settings of a test: its own folder for all data, a free port, and `settings` (`LLM__PROVIDER`, …) on top.
pub fn sources(data: &TempDir, settings: &[(&str, &str)]) -> Sources {
    let file = |name: &str| data.path().join(name).display().to_string();
    let mut env: BTreeMap<String, String> = [
        ("SERVER__BIND", "127.0.0.1:0".to_owned()),
        ("STORE__URL", format!("sqlite://{}", file(DATABASE))),
        ("AUTH__DEV_SECRET_FILE", file("dev-secret")),
        ("LLM__PROVIDER", "demo".to_owned()),
        // One user asks for what a hundred would.
        ("LIMITS__STARTS_PER_MINUTE", "0".to_owned()),
        ("LIMITS__ACTIVE_RUNS_PER_USER", "0".to_owned()),
        ("LIMITS__ACTIVE_RUNS_PER_TENANT", "0".to_owned()),
        ("LIMITS__READERS_PER_RUN", "0".to_owned()),
        ("SERVER__REQUESTS_PER_USER", "0".to_owned()),
    ]
    .into_iter()
    .map(|(key, value)| (format!("SWITCHBOARD__{key}"), value))
    .collect();
    // Variables of others have their own names.
    let name = |key: &str| if key.starts_with("AWS_") { key.to_owned() } else { format!("SWITCHBOARD__{key}") };
    env.extend(settings.iter().map(|(key, value)| (name(key), (*value).to_owned())));
    Sources { env, ..Sources::default() }
}

impl TestApp {
    /// The product with the demo model and the demo backend.
    pub async fn demo() -> Self {
        Self::start(&[]).await
    }

    /// The product with these settings over the tests' own.
    pub async fn start(settings: &[(&str, &str)]) -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), settings).await
    }

    /// The product on data that may be there already, with the files of its `config/` if there are any.
    pub async fn start_in(data: TempDir, settings: &[(&str, &str)]) -> Self {
        let database = data.path().join(DATABASE);
        if !database.exists() && settings.iter().all(|(key, _)| *key != "STORE__URL") {
            sqlite::make(&database).await;
        }
        let folder = Some(data.path().join("config")).filter(|folder| folder.is_dir());
        let sources = Sources { dir: folder, ..sources(&data, settings) };
        let config = Config::load(&sources).unwrap();
        let app = App::build(&config, &sources.assets()).await.unwrap();
        let address = app.address();
        let tokens = app.tokens();
        let sign = move |user: &str, tenant: Option<&str>, roles: &[&str], ttl: Duration| {
            let claims = Claims {
                user: user.to_owned(),
                tenant: tenant.map(str::to_owned),
                roles: roles.iter().map(|role| (*role).to_owned()).collect(),
                ttl,
            };
            let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs();
            match tokens.sign(&claims, now) {
                // A mode that only verifies; its tests bring their own tokens.
                Err(AuthSetupError::CannotSign) => String::new(),
                signed => signed.unwrap(),
            }
        };
        let token = sign(ADA, None, &["USER", "ADMIN"], LIFE);
        let (stop, stopped) = oneshot::channel();
        let stop_asked = async {
            let _ = stopped.await;
        };
        let serving = tokio::spawn(app.serve(stop_asked, std::future::pending()));
        // Without TLS: to read all certificates of the machine takes longer than many a test.
        let http = reqwest::Client::builder().no_proxy().tls_certs_only([]).build().unwrap();
        Self { address, token, http, sign: Box::new(sign), stop: Some(stop), serving: Some(serving), data }
    }

    /// A token for somebody else.
    pub fn token_of(&self, user: &str, tenant: Option<&str>, roles: &[&str]) -> String {
        (self.sign)(user, tenant, roles, LIFE)
    }

    /// A token without roles that lives so long.
    pub fn token_for(&self, user: &str, tenant: Option<&str>, life: Duration) -> String {
        (self.sign)(user, tenant, &[], life)
    }

    /// A URL of the product.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Posts a chat turn as Ada.
    pub async fn post(&self, body: &Value) -> reqwest::Response {
        self.post_as(&self.token, body).await
    }

    /// Posts a chat turn with some token.
    pub async fn post_as(&self, token: &str, body: &Value) -> reqwest::Response {
        self.http.post(self.url("/v1/agent/chat")).bearer_auth(token).json(body).send().await.unwrap()
    }

    /// The frames of a chat turn of Ada, to the end.
    pub async fn chat(&self, body: &Value) -> Vec<Frame> {
        let response = self.post(body).await;
        let (status, text) = (response.status(), response.text().await.unwrap());
        assert_eq!(status, 200, "{text}");
        frames::parse(&text)
    }

    /// The frames of a message in the workflow profile, with a conversation.
    pub async fn say(&self, conversation: &str, message: &str) -> Vec<Frame> {
        self.chat(&json!({"message": message, "context_type": "workflow", "conversation_id": conversation})).await
    }

    /// Changes rows of its database, beside it.
    pub async fn beside(&self, sql: &str) {
        let url = format!("sqlite://{}", self.data.path().join(DATABASE).display());
        let mut connection = SqliteConnection::connect(&url).await.unwrap();
        let changed = sqlx::query(AssertSqlSafe(sql.to_owned())).execute(&mut connection).await.unwrap();
        assert!(changed.rows_affected() > 0, "{sql}");
    }

    /// Stops the product and waits until it has; its data folder comes back.
    pub async fn stop(mut self) -> TempDir {
        self.stop.take().unwrap().send(()).unwrap();
        self.serving.take().unwrap().await.unwrap();
        std::mem::replace(&mut self.data, tempfile::tempdir().unwrap())
    }
}
