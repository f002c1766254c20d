//! A connection to Redis that comes back: dialled when it is needed, dropped when it fails, and never waited for long.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{
    AsyncConnectionConfig, Client, Cmd, ErrorKind, FromRedisValue, Pipeline, RedisError, RedisResult, ServerErrorKind,
};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use crate::observe::metrics::{self, Outcome};

/// How long a command may take. A server that is slower is as good as none, since readers wait.
pub const RESPONSE: Duration = Duration::from_secs(1);

/// How long dialling may take.
const DIAL: Duration = Duration::from_millis(500);

/// After a dial that failed, everybody fails without another for so long: a thousand runs must not dial a thousand
/// times.
const REDIAL: Duration = Duration::from_millis(50);

/// A connection that was waited for so long in vain is not used again.
const SILENT: Duration = Duration::from_millis(400);

/// One connection for many commands at once.
pub struct Link {
    client: Client,
    slot: Mutex<Slot>,
    /// The connection that somebody waited for in vain; 0 is none.
    silent: AtomicU64,
}

#[derive(Default)]
struct Slot {
    connection: Option<MultiplexedConnection>,
    /// Counts connections, so that a late failure does not drop its connection's successor.
    dialled: u64,
    failed: Option<Instant>,
}

impl Link {
    /// A link that will be dialled at its first command.
    pub fn new(client: Client) -> Self {
        Self { client, slot: Mutex::default(), silent: AtomicU64::new(0) }
    }

    /// What a command answers. It may have been carried out even when this fails.
    pub async fn ask<T: FromRedisValue>(&self, command: &Cmd) -> RedisResult<T> {
        let (mut connection, dialled) = self.connection().await?;
        let mut wait = Wait { link: self, dialled, since: Instant::now(), answered: false };
        let answer = within(RESPONSE, command.query_async(&mut connection)).await;
        wait.answered = true;
        self.judge(answer, dialled).await
    }

    /// What several commands answer, in one round trip.
    pub async fn ask_all<T: FromRedisValue>(&self, commands: &Pipeline) -> RedisResult<T> {
        let (mut connection, dialled) = self.connection().await?;
        let mut wait = Wait { link: self, dialled, since: Instant::now(), answered: false };
        let answer = within(RESPONSE, commands.query_async(&mut connection)).await;
        wait.answered = true;
        self.judge(answer, dialled).await
    }

    /// What a command answers that does no harm when it is carried out twice. It is asked again for up to `limit`,
    /// since a connection that has been idle is found dead only by using it.
    pub async fn ask_again<T: FromRedisValue>(&self, command: &Cmd, limit: Duration) -> RedisResult<T> {
        let asked = async {
            loop {
                match self.ask(command).await {
                    Err(error) if has_no_answer(&error) => tokio::time::sleep(REDIAL / 2).await,
                    answer => return answer,
                }
            }
        };
        within(limit, asked).await
    }

    async fn connection(&self) -> RedisResult<(MultiplexedConnection, u64)> {
        let mut slot = self.slot.lock().await;
        if slot.dialled == self.silent.load(Ordering::Relaxed) {
            slot.connection = None;
        }
        if let Some(connection) = &slot.connection {
            return Ok((connection.clone(), slot.dialled));
        }
        if slot.failed.is_some_and(|failed| failed.elapsed() < REDIAL) {
            return Err(RedisError::from((ErrorKind::Io, "the last dial failed just now")));
        }
        let config =
            AsyncConnectionConfig::new().set_connection_timeout(Some(DIAL)).set_response_timeout(Some(RESPONSE));
        // The whole handshake counts, also where the server accepts and says nothing.
        match within(DIAL, self.client.get_multiplexed_async_connection_with_config(&config)).await {
            Ok(connection) => {
                metrics::redis_dialled(Outcome::OK);
                slot.dialled += 1;
                slot.failed = None;
                slot.connection = Some(connection.clone());
                Ok((connection, slot.dialled))
            }
            Err(error) => {
                metrics::redis_dialled(Outcome::failed("failed"));
                slot.failed = Some(Instant::now());
                Err(error)
            }
        }
    }

    /// Drops the connection where it gave no answer, or leads to a server that another has taken over from.
    async fn judge<T>(&self, answer: RedisResult<T>, dialled: u64) -> RedisResult<T> {
        if answer.as_ref().is_err_and(|error| has_no_answer(error) || is_demoted(error)) {
            let mut slot = self.slot.lock().await;
            if slot.dialled == dialled {
                slot.connection = None;
            }
        }
        answer
    }
}

/// Somebody who waits for an answer. One who gives up before the command's own time is over leaves word of it: nothing
/// else would tell that the connection leads nowhere, while all who come give up early.
struct Wait<'a> {
    link: &'a Link,
    dialled: u64,
    since: Instant,
    answered: bool,
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        if !self.answered && self.since.elapsed() >= SILENT {
            self.link.silent.store(self.dialled, Ordering::Relaxed);
        }
    }
}

/// What `asked` gives, unless it takes longer than `limit`.
pub async fn within<T>(limit: Duration, asked: impl Future<Output = RedisResult<T>>) -> RedisResult<T> {
    timeout(limit, asked).await.unwrap_or_else(|_| Err(too_slow()))
}

/// A server's refusal is an answer.
pub fn has_no_answer(error: &RedisError) -> bool {
    !matches!(error.kind(), ErrorKind::Server(_) | ErrorKind::Extension)
}

fn is_demoted(error: &RedisError) -> bool {
    matches!(error.kind(), ErrorKind::Server(ServerErrorKind::ReadOnly | ServerErrorKind::MasterDown))
}

fn too_slow() -> RedisError {
    RedisError::from((ErrorKind::Io, "no answer in time"))
}
