//! Turns of writers, and their commits. Writers take turns at one connection, in the order in which they came. One that
//! has had its turn while others wait leaves the commit to them: the rows of up to [`MOST_TOGETHER`] go to the disk at
//! once, which takes as long as it does for one. No commit is reported before that.
//!
//! One that leaves without a commit leaves nothing behind: the next one undoes it first, and it is undone if none
//! comes.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqlitePool, SqliteRow};
use sqlx::{ConnectOptions, Connection, Sqlite, Transaction};
use tokio::runtime::Handle;
use tokio::sync::{Mutex, OwnedMutexGuard, oneshot};
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use super::batch::{fetch, run};
use crate::store::statement::{Batch, query};

/// How many commit together at most, so that the first of them does not wait long for the others.
const MOST_TOGETHER: usize = 64;

/// The first statement of every transaction, see this store's invariant.
const BEGIN: &str = "BEGIN IMMEDIATE";

/// How often it is tried to empty the log, and the pause between: a minute together.
const EMPTYINGS: u32 = 60;
const EMPTYING_PAUSE: Duration = Duration::from_secs(1);

/// How long emptying the log waits for those who read an older state, in milliseconds: all who write wait too.
const BRIEFLY: &str = "PRAGMA busy_timeout = 200";

/// How long a writer waits for another process, as the connection was opened.
const PATIENTLY: &str = "PRAGMA busy_timeout = 5000";

/// `SQLITE_ERROR`, with which SQLite says that there is no transaction, or none of that name.
const NOTHING_THERE: &str = "1";

/// The right to write.
pub(super) enum Writer {
    /// To a file.
    File(Arc<Turns>),
    /// To the one connection of a database in memory, which its readers use too: what is not committed would be theirs.
    Memory(SqlitePool),
}

/// Those who take turns.
pub(super) struct Turns {
    turn: Arc<Mutex<Turn>>,
    /// How many wait for their turn.
    waiting: AtomicUsize,
    patience: Duration,
    /// How often the log will be tried to be emptied again; 0 where nobody does.
    emptyings: AtomicU32,
    /// Tasks that commit for others, or undo the rest of a writer that is gone.
    tasks: TaskTracker,
}

/// The state that the writer holds in its turn.
struct Turn {
    connection: SqliteConnection,
    options: SqliteConnectOptions,
    /// Those whose turns are over, and who wait for the commit.
    members: Vec<oneshot::Sender<Result<(), Arc<sqlx::Error>>>>,
    /// Whether what is in the transaction behind the members' is to be undone.
    is_spoilt: bool,
    is_closed: bool,
}

/// A transaction that may write; dropped before its commit it has done nothing.
pub(in crate::store) enum Writing {
    /// On the writers' connection.
    Turn(Held),
    /// With a connection of its own.
    Alone(Transaction<'static, Sqlite>),
}

/// A turn that has been taken.
pub(in crate::store) struct Held {
    turn: OwnedMutexGuard<Turn>,
    turns: Arc<Turns>,
    /// Whether nothing is left to be undone.
    is_over: bool,
}

/// A writer that waits for its turn.
struct Waiter<'a>(&'a AtomicUsize);

impl<'a> Waiter<'a> {
    fn join(waiting: &'a AtomicUsize) -> Self {
        waiting.fetch_add(1, Ordering::Relaxed);
        Self(waiting)
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Writer {
    /// The writers of the file that `connection` is open on; `options` open another one instead. No writer waits longer
    /// than `patience` for its turn.
    pub(super) fn to_file(connection: SqliteConnection, options: SqliteConnectOptions, patience: Duration) -> Self {
        let turn = Turn { connection, options, members: Vec::new(), is_spoilt: false, is_closed: false };
        let (turn, waiting) = (Arc::new(Mutex::new(turn)), AtomicUsize::new(0));
        Self::File(Arc::new(Turns { turn, waiting, patience, emptyings: AtomicU32::new(0), tasks: TaskTracker::new() }))
    }

    /// A transaction, as soon as no other one is open, with `first` run in it; a row of its last statement, if that has
    /// any.
    pub(super) async fn begin(&self, first: Batch) -> Result<(Writing, Option<SqliteRow>), sqlx::Error> {
        match self {
            Self::File(turns) => {
                let (held, row) = turns.take(first).await?;
                Ok((Writing::Turn(held), row))
            }
            Self::Memory(pool) => {
                let mut transaction = pool.begin_with(BEGIN).await?;
                let row = fetch(first, &mut transaction).await?;
                Ok((Writing::Alone(transaction), row))
            }
        }
    }

    /// How many connections are in use, and how many are not.
    pub(super) fn connections(&self) -> (usize, usize) {
        match self {
            Self::File(turns) => match turns.turn.try_lock() {
                Ok(_) => (0, 1),
                Err(_) => (1, 0),
            },
            Self::Memory(pool) => super::counted(pool),
        }
    }

    /// Copies the log into the database and empties it. Where a reader keeps it from that, it is tried again behind the
    /// caller's back.
    pub(super) async fn empty_log(&self) {
        if let Self::File(turns) = self {
            let (first, outcome) = oneshot::channel();
            let turns = Arc::clone(turns);
            turns.tasks.clone().spawn(async move { turns.empty_log(first).await });
            // Dropped unheard where the store is closed, which empties the log too.
            let _ = outcome.await;
        }
    }

    /// Closes the database when everything begun has ended.
    pub(super) async fn close(&self) {
        match self {
            Self::File(turns) => turns.close().await,
            Self::Memory(pool) => pool.close().await,
        }
    }
}

impl Turns {
    async fn take(self: &Arc<Self>, first: Batch) -> Result<(Held, Option<SqliteRow>), sqlx::Error> {
        let waits = Waiter::join(&self.waiting);
        let turn = timeout(self.patience, Arc::clone(&self.turn).lock_owned()).await;
        let turn = turn.map_err(|_| sqlx::Error::PoolTimedOut)?;
        drop(waits);
        let mut held = Held { turn, turns: Arc::clone(self), is_over: true };
        let row = held.begin(first).await?;
        Ok((held, row))
    }

    /// The connection between two writers, without a transaction.
    async fn between(self: &Arc<Self>) -> Held {
        Held { turn: Arc::clone(&self.turn).lock_owned().await, turns: Arc::clone(self), is_over: true }
    }

    /// Tells when it has been tried once. One task tries again for all whose try was in vain.
    async fn empty_log(self: &Arc<Self>, first: oneshot::Sender<()>) {
        let is_empty = self.is_log_empty().await;
        // One that has left does not listen.
        let _ = first.send(());
        if is_empty || self.emptyings.swap(EMPTYINGS, Ordering::AcqRel) > 0 {
            return;
        }
        loop {
            tokio::time::sleep(EMPTYING_PAUSE).await;
            let left = self.emptyings.fetch_sub(1, Ordering::AcqRel) - 1;
            let is_empty = self.is_log_empty().await;
            // Otherwise somebody has wanted it meanwhile.
            if is_empty && self.emptyings.compare_exchange(left, 0, Ordering::AcqRel, Ordering::Acquire).is_ok() {
                return;
            }
            // Whoever wants it now tries again by themselves.
            if left == 0 {
                break;
            }
        }
        tracing::warn!("the log of the store's database is read without end, and keeps what was deleted for now");
    }

    /// Whether the log was emptied, or cannot be.
    async fn is_log_empty(self: &Arc<Self>) -> bool {
        self.try_empty_log().await.unwrap_or_else(|error| {
            tracing::warn!(%error, "the log of the store's database was not emptied");
            true
        })
    }

    /// Whether the log is empty. No one writes meanwhile, and readers of the newest state do not matter.
    async fn try_empty_log(self: &Arc<Self>) -> Result<bool, sqlx::Error> {
        let mut held = self.between().await;
        held.end_together().await;
        if held.turn.is_closed {
            return Ok(true);
        }
        let connection = &mut held.turn.connection;
        sqlx::query(BRIEFLY).execute(&mut *connection).await?;
        let emptied = sqlx::query_scalar::<_, i64>("PRAGMA wal_checkpoint(TRUNCATE)").fetch_one(&mut *connection).await;
        sqlx::query(PATIENTLY).execute(connection).await?;
        Ok(emptied? == 0)
    }

    async fn close(self: &Arc<Self>) {
        let mut held = self.between().await;
        held.end_together().await;
        held.turn.is_closed = true;
        // The field needs a connection, and none uses this one any more.
        let closed = match SqliteConnectOptions::new().in_memory(true).connect().await {
            Ok(empty) => std::mem::replace(&mut held.turn.connection, empty).close().await,
            Err(error) => Err(error),
        };
        if let Err(error) = closed {
            tracing::warn!(%error, "the store's database was not closed in order");
        }
        drop(held);
        self.tasks.close();
        self.tasks.wait().await;
    }
}

impl Held {
    async fn begin(&mut self, mut first: Batch) -> Result<Option<SqliteRow>, sqlx::Error> {
        if self.turn.is_closed {
            return Err(sqlx::Error::PoolClosed);
        }
        self.turn.undo().await?;
        self.is_over = false;
        let statement = if self.turn.members.is_empty() { BEGIN } else { "SAVEPOINT turn" };
        first.0.insert(0, query(statement));
        fetch(first, &mut self.turn.connection).await
    }

    /// Runs what is left to do and commits, alone or with the others.
    async fn commit(mut self, mut last: Batch) -> Result<(), sqlx::Error> {
        let is_anybody_waiting = self.turns.waiting.load(Ordering::Relaxed) > 0;
        if self.turn.members.is_empty() && !is_anybody_waiting {
            last.say("COMMIT");
            run(last, &mut self.turn.connection).await?;
            self.is_over = true;
            return Ok(());
        }
        if !self.turn.members.is_empty() {
            last.say("RELEASE turn");
        }
        run(last, &mut self.turn.connection).await?;
        self.is_over = true;
        let (tell, outcome) = oneshot::channel();
        self.turn.members.push(tell);
        if !is_anybody_waiting || self.turn.members.len() >= MOST_TOGETHER {
            // In a task, since whoever waits here may leave, and the others would not hear of it.
            self.turns.tasks.clone().spawn(async move { self.end_together().await });
        } else if self.turn.members.len() == 1 {
            let turns = Arc::clone(&self.turns);
            // Behind all who wait now: if they leave instead, this task does it.
            self.turns.tasks.spawn(async move { turns.between().await.end_together().await });
            drop(self);
        } else {
            drop(self);
        }
        match outcome.await {
            Ok(committed) => committed.map_err(|error| sqlx::Error::Io(std::io::Error::other(error))),
            Err(_) => Err(sqlx::Error::WorkerCrashed),
        }
    }

    /// Commits what the members have written, and tells them.
    async fn end_together(&mut self) {
        // A failure here takes the members with it, and has been sent to them.
        if self.turn.undo().await.is_err() || self.turn.members.is_empty() {
            return;
        }
        let committed = sqlx::query("COMMIT").execute(&mut self.turn.connection).await;
        let committed = committed.map(|_| ()).map_err(Arc::new);
        let has_failed = committed.is_err();
        self.turn.tell(&committed);
        if has_failed {
            self.turn.is_spoilt = true;
            // Whoever comes next tries again.
            let _ = self.turn.undo().await;
        }
    }

    async fn roll_back(mut self) -> Result<(), sqlx::Error> {
        self.is_over = true;
        self.turn.is_spoilt = true;
        self.turn.undo().await
    }
}

impl Turn {
    /// Undoes the rest of a writer that is gone, so that the next one finds the rows of the members, or nothing.
    async fn undo(&mut self) -> Result<(), sqlx::Error> {
        if !self.is_spoilt {
            return Ok(());
        }
        if !self.members.is_empty() {
            let undone = sqlx::query("ROLLBACK TO turn; RELEASE turn").execute(&mut self.connection).await;
            let Err(error) = undone else {
                self.is_spoilt = false;
                return Ok(());
            };
            // Whoever left while they joined the members is one of them. After some failures, such as a full disk, SQLite
            // has rolled back everything instead; only then can a transaction begin.
            if sqlx::query("BEGIN").execute(&mut self.connection).await.is_err() {
                self.is_spoilt = false;
                return Ok(());
            }
            self.tell(&Err(Arc::new(error)));
        }
        match sqlx::query("ROLLBACK").execute(&mut self.connection).await {
            Ok(_) => {}
            Err(error) if is_nothing_there(&error) => {}
            // One that could not be rolled back could not begin another one either.
            Err(_) => self.connection = self.options.connect().await?,
        }
        self.is_spoilt = false;
        Ok(())
    }

    fn tell(&mut self, outcome: &Result<(), Arc<sqlx::Error>>) {
        for member in self.members.drain(..) {
            // One that has left does not listen.
            let _ = member.send(outcome.clone());
        }
    }
}

fn is_nothing_there(error: &sqlx::Error) -> bool {
    error.as_database_error().and_then(|error| error.code()).is_some_and(|code| code == NOTHING_THERE)
}

impl Drop for Held {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        self.turn.is_spoilt = true;
        let turns = Arc::clone(&self.turns);
        // Without a runtime the process ends, and its transaction with it.
        if let Ok(runtime) = Handle::try_current() {
            let undo = async move {
                if let Err(error) = turns.between().await.turn.undo().await {
                    tracing::warn!(%error, "the store could not undo what was not committed; it is tried again");
                }
            };
            self.turns.tasks.spawn_on(undo, &runtime);
        }
    }
}

impl Writing {
    /// Runs `last` and commits, in one go. An error may be of the answer alone: the changes may be there.
    pub(in crate::store) async fn commit(self, last: Batch) -> Result<(), sqlx::Error> {
        match self {
            Self::Turn(held) => held.commit(last).await,
            Self::Alone(mut transaction) => {
                run(last, &mut transaction).await?;
                transaction.commit().await
            }
        }
    }

    /// Undoes what was changed.
    pub(in crate::store) async fn rollback(self) -> Result<(), sqlx::Error> {
        match self {
            Self::Turn(held) => held.roll_back().await,
            Self::Alone(transaction) => transaction.rollback().await,
        }
    }
}

impl Deref for Writing {
    type Target = SqliteConnection;

    fn deref(&self) -> &SqliteConnection {
        match self {
            Self::Turn(held) => &held.turn.connection,
            Self::Alone(transaction) => transaction,
        }
    }
}

impl DerefMut for Writing {
    fn deref_mut(&mut self) -> &mut SqliteConnection {
        match self {
            Self::Turn(held) => &mut held.turn.connection,
            Self::Alone(transaction) => transaction,
        }
    }
}
