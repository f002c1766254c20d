//! A connection to Redis that comes back: dialled when it is needed, dropped when it fails, and never waited for long.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{
    AsyncConnectionConfig, Client, Cmd, ErrorKind, FromRedisValue, Pipeline, RedisError, RedisResult, ServerErrorKind,
};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};
use tokio_util::task::AbortOnDropHandle;

use crate::observe::metrics::{self, Outcome};

/// How long a command may take. A server that is slower is as good as none, since readers wait.
pub const RESPONSE: Duration = Duration::from_secs(1);

/// How long dialling may take.
const DIAL: Duration = Duration::from_millis(500);

/// After a dial that failed, everybody fails without another for so long: a thousand runs must not dial a thousand
/// times.
const REDIAL: Duration = Duration::from_millis(50);

/// The usual [`Link::patience`].
const SILENT: Duration = Duration::from_millis(400);

/// One connection for many commands at once.
pub struct Link {
    client: Client,
    /// A connection that was waited for so long in vain is not used again.
    patience: Duration,
    slot: Mutex<Slot>,
    /// The connection of an answer that never came; 0 is none.
    silent: AtomicU64,
}

#[derive(Default)]
struct Slot {
    connection: Option<MultiplexedConnection>,
    /// Counts connections, so that a late failure does not drop its connection's successor.
    dialled: u64,
    failed: Option<Instant>,
    /// The dial under way. It goes on when whoever began it gives up, and the next one gets what it gives; it ends within
    /// [`DIAL`], or with the link.
    dial: Option<AbortOnDropHandle<(Instant, RedisResult<MultiplexedConnection>)>>,
}

impl Link {
    /// A link that will be dialled at its first command.
    pub fn new(client: Client) -> Self {
        Self::patient(client, SILENT)
    }

    /// The same for those who give up early: a connection is not used again that was waited for so long in vain.
    pub fn patient(client: Client, patience: Duration) -> Self {
        Self { client, patience, slot: Mutex::default(), silent: AtomicU64::new(0) }
    }

    /// The answer of a command. It may have been carried out even when this fails.
    pub async fn ask<T: FromRedisValue>(&self, command: &Cmd) -> RedisResult<T> {
        let (mut connection, dialled) = self.connection().await?;
        let mut wait = Wait { link: self, dialled, since: Instant::now(), answered: false };
        let answer = within(RESPONSE, command.query_async(&mut connection)).await;
        wait.answered = true;
        self.judge(answer, dialled).await
    }

    /// The answers of several commands, in one round trip.
    pub async fn ask_all<T: FromRedisValue>(&self, commands: &Pipeline) -> RedisResult<T> {
        let (mut connection, dialled) = self.connection().await?;
        let mut wait = Wait { link: self, dialled, since: Instant::now(), answered: false };
        let answer = within(RESPONSE, commands.query_async(&mut connection)).await;
        wait.answered = true;
        self.judge(answer, dialled).await
    }

    /// The answer of a command that does no harm when it is carried out twice. It is sent again for up to `limit`,
    /// since a connection that has been idle is found dead only by using it.
    pub async fn ask_again<T: FromRedisValue>(&self, command: &Cmd, limit: Duration) -> RedisResult<T> {
        let answer = async {
            loop {
                match self.ask(command).await {
                    Err(error) if has_no_answer(&error) => tokio::time::sleep(REDIAL / 2).await,
                    answer => return answer,
                }
            }
        };
        within(limit, answer).await
    }

    #[expect(clippy::disallowed_methods, reason = "the slot owns the dial, and aborts it when it goes")]
    async fn connection(&self) -> RedisResult<(MultiplexedConnection, u64)> {
        let mut slot = self.slot.lock().await;
        if slot.dialled == self.silent.load(Ordering::Relaxed) {
            slot.connection = None;
        }
        if let Some(connection) = &slot.connection {
            return Ok((connection.clone(), slot.dialled));
        }
        loop {
            if slot.failed.is_some_and(|failed| failed.elapsed() < REDIAL) {
                return Err(RedisError::from((ErrorKind::Io, "the last dial failed just now")));
            }
            let client = &self.client;
            let dial = slot.dial.get_or_insert_with(|| AbortOnDropHandle::new(tokio::spawn(dialled(client.clone()))));
            let was_over = dial.is_finished();
            let dialled = dial.await;
            slot.dial = None;
            match dialled {
                Ok((_, Ok(connection))) => {
                    slot.dialled += 1;
                    slot.failed = None;
                    slot.connection = Some(connection.clone());
                    return Ok((connection, slot.dialled));
                }
                // A failure outside of all waits counts only when it is new.
                Ok((at, Err(_))) if was_over && at.elapsed() >= REDIAL => {}
                Ok((at, Err(error))) => {
                    slot.failed = Some(at);
                    return Err(error);
                }
                // It panicked, or the process ends.
                Err(_) => return Err(too_slow()),
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

/// A new connection, or why there is none, and when that was known.
async fn dialled(client: Client) -> (Instant, RedisResult<MultiplexedConnection>) {
    let config = AsyncConnectionConfig::new().set_connection_timeout(Some(DIAL)).set_response_timeout(Some(RESPONSE));
    // The whole handshake counts, also where the server accepts and says nothing.
    let dialled = within(DIAL, client.get_multiplexed_async_connection_with_config(&config)).await;
    metrics::redis_dialled(if dialled.is_ok() { Outcome::OK } else { Outcome::failed("failed") });
    (Instant::now(), dialled)
}

/// A wait for an answer. One that ends before the command's own time is over notes it: nothing else would show that the
/// connection leads nowhere, while all waits end early.
struct Wait<'a> {
    link: &'a Link,
    dialled: u64,
    since: Instant,
    answered: bool,
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        if !self.answered && self.since.elapsed() >= self.link.patience {
            self.link.silent.store(self.dialled, Ordering::Relaxed);
        }
    }
}

/// The output of `answer`, unless it takes longer than `limit`.
pub async fn within<T>(limit: Duration, answer: impl Future<Output = RedisResult<T>>) -> RedisResult<T> {
    timeout(limit, answer).await.unwrap_or_else(|_| Err(too_slow()))
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
