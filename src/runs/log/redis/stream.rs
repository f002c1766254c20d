//! A run's log as a Redis stream: its key, its entries, and the few commands that touch it.
//!
//! An entry holds a batch of events as JSON lines; its id is the first event's number plus one, since Redis has no
//! entry 0-0. Before them is one without events, which tells that the run has begun: it may have to wait for its turn.
//! **Invariant:** the terminal event is an entry of its own with the greatest id there is, so Redis refuses whatever an
//! owner sends that did not notice its end. There is one end at most, whoever comes first.

use std::sync::Arc;
use std::time::Duration;

use redis::streams::{StreamId, StreamRangeReply, StreamReadOptions, StreamReadReply};
use redis::{ErrorKind, RedisError, RedisResult, ToRedisArgs, cmd, pipe};

use super::link::{Link, RESPONSE};
use super::script::{APPEND, Call, FORGET, OPEN, SEAL};
use crate::chat::event::AgentEvent;
use crate::chat::ids::RunId;
use crate::runs::log::wire;

/// The terminal entry's id.
const END: &str = "18446744073709551615-18446744073709551615";

/// The id of the entry without events.
const OPENED: &str = "0-1";

/// Before the first entry.
pub const BEGINNING: &str = "0-0";

/// Entries per command that reads one stream; an entry may hold a mebibyte.
const PAGE: usize = 32;

/// Streams per command that forgets many.
const FORGOTTEN: usize = 100;

/// How many seconds the key is there by which it is seen whether Redis takes anything.
const ALIVE_S: u64 = 60;

/// How long a stream refuses its owner after it was forgotten: longer than any owner takes to hear of that, or to lose
/// its lease.
const REFUSES: Duration = Duration::from_secs(60);

/// Entries per stream and command that follows many: more than are written from one look to the next, once it has
/// caught up.
const NEWS: usize = 4;

/// The streams of one installation.
pub struct Streams {
    prefix: String,
    /// Appends have a connection of their own, so that no long answer delays them.
    writes: Link,
    reads: Link,
}

/// The events of one command.
pub struct Batch {
    /// The first event's number.
    pub first: u64,
    /// The events, the end apart.
    pub events: Vec<Arc<AgentEvent>>,
    /// The terminal event.
    pub end: Option<Arc<AgentEvent>>,
}

impl Batch {
    /// The number after the last event, where no end is counted.
    fn end_number(&self) -> u64 {
        self.first + self.events.len() as u64
    }

    /// The number of the event after all of these.
    pub fn next_id(&self) -> u64 {
        self.end_number() + u64::from(self.end.is_some())
    }
}

/// The result of a batch.
pub enum Appended {
    /// It is there.
    Kept,
    /// The log had been ended by another replica.
    Sealed(End),
}

/// The end of a log that another replica has put.
pub struct End {
    /// The terminal event's number.
    pub number: u64,
    /// It.
    pub end: AgentEvent,
    /// Whether the log is forgotten.
    pub forgotten: bool,
}

/// The result of sealing a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sealed {
    /// It has an end, or there is none.
    Ended,
    /// It did not have every event before the end, and was removed.
    GivenUp,
}

/// An entry that was read.
pub struct Entry {
    /// Its id, to go on after.
    pub id: String,
    /// The first event's number.
    pub first: u64,
    /// Its events.
    pub events: Vec<AgentEvent>,
    /// Whether it is the end of a log that is forgotten: only for those who had read all before it.
    pub forgotten: bool,
}

impl Streams {
    /// Streams whose keys begin with `prefix`.
    ///
    /// # Errors
    /// When `url` is not one of Redis.
    pub fn new(url: &str, prefix: &str) -> RedisResult<Self> {
        let client = redis::Client::open(url)?;
        Ok(Self { prefix: prefix.to_owned(), writes: Link::new(client.clone()), reads: Link::new(client) })
    }

    fn key(&self, run: RunId) -> String {
        format!("{}:run:{run}", self.prefix)
    }

    /// Asks whether appends would be taken, for up to `limit`.
    pub async fn is_writable(&self, limit: Duration) -> RedisResult<()> {
        let mut set = cmd("SET");
        set.arg(format!("{}:alive", self.prefix)).arg(1).arg("EX").arg(ALIVE_S);
        self.writes.ask_again(&set, limit).await
    }

    /// Begins a run's stream, so that others find it before its first event. Asks for up to `limit`.
    pub async fn open(&self, run: RunId, life: Duration, limit: Duration) -> RedisResult<()> {
        let call = Call::new(&OPEN, self.key(run)).arg(OPENED).arg(milliseconds(life));
        let _: i64 = call.ask_again(&self.writes, limit).await?;
        Ok(())
    }

    /// Adds a batch, whose texts were made by [`Self::append_command`].
    pub async fn append(&self, command: &Call) -> RedisResult<Appended> {
        let sealed: Vec<String> = command.ask(&self.writes).await?;
        match &sealed[..] {
            [number, end, forgotten] => {
                let number = number.parse().map_err(|_| malformed("the end has no number"))?;
                let forgotten = !forgotten.is_empty();
                let end = wire::read(end).map_err(|_| malformed("the end is no event"))?;
                let [end] = <[AgentEvent; 1]>::try_from(end).map_err(|_| malformed("the end is not one event"))?;
                Ok(Appended::Sealed(End { number, end, forgotten }))
            }
            _ => Ok(Appended::Kept),
        }
    }

    /// The command that adds a batch, lets go of entries before the one that begins with event `keep_from`, and lets
    /// the stream live for `life`.
    pub fn append_command(
        &self,
        run: RunId,
        batch: &Batch,
        keep_from: Option<u64>,
        life: Duration,
    ) -> RedisResult<Call> {
        let id = |number: u64| format!("{}-0", number + 1);
        let events = wire::write(batch.events.iter().map(|event| &**event)).map_err(unwritable)?;
        let end = wire::write(batch.end.as_deref()).map_err(unwritable)?;
        Ok(Call::new(&APPEND, self.key(run))
            .arg(id(batch.first))
            .arg(events)
            .arg(end)
            .arg(batch.end_number())
            .arg(keep_from.map(id).unwrap_or_default())
            .arg(milliseconds(life)))
    }

    /// Ends a run's stream, if there is one without an end. Where that is not event number `at`, removes it. Takes no
    /// longer than one answer may, since many may have to be sealed when Redis is away.
    pub async fn seal(&self, run: RunId, end: &AgentEvent, at: Option<u64>, life: Duration) -> RedisResult<Sealed> {
        let end = wire::write([end]).map_err(unwritable)?;
        let at = at.map(|at| at.to_string()).unwrap_or_default();
        let call = Call::new(&SEAL, self.key(run)).arg(end).arg(at).arg(milliseconds(life));
        let sealed: i64 = call.ask_twice(&self.writes).await?;
        Ok(if sealed < 0 { Sealed::GivenUp } else { Sealed::Ended })
    }

    /// Removes runs' streams. One without an end leaves an end behind, cancelled and without what was before it, so
    /// that its owner is refused: it would begin the stream anew with its next events.
    pub async fn forget(&self, runs: &[RunId]) -> RedisResult<()> {
        let end = wire::write([&AgentEvent::Cancelled]).map_err(unwritable)?;
        for runs in runs.chunks(FORGOTTEN) {
            let calls = runs.iter().map(|run| Call::new(&FORGET, self.key(*run)).arg(&end).arg(milliseconds(REFUSES)));
            Call::ask_all(calls, &self.writes).await?;
        }
        Ok(())
    }

    /// The next entries after `after`, some at a time; whether there may be more.
    pub async fn page(&self, run: RunId, after: &str) -> RedisResult<(Vec<Entry>, bool)> {
        let mut range = cmd("XRANGE");
        range.arg(self.key(run)).arg(format!("({after}")).arg("+").arg("COUNT").arg(PAGE);
        let reply: StreamRangeReply = self.reads.ask_again(&range, RESPONSE).await?;
        // Redis refuses to look for what is after the greatest id.
        let more = reply.ids.len() >= PAGE && reply.ids.last().is_some_and(|last| last.id != END);
        Ok((reply.ids.into_iter().map(entry).collect::<RedisResult<_>>()?, more))
    }

    /// The entries of each of these runs after one of them, some at a time, in the runs' order.
    pub async fn after(&self, runs: &[(RunId, String)]) -> RedisResult<Vec<RedisResult<Vec<Entry>>>> {
        let keys: Vec<String> = runs.iter().map(|(run, _)| self.key(*run)).collect();
        let ids: Vec<&str> = runs.iter().map(|(_, after)| after.as_str()).collect();
        let options = StreamReadOptions::default().count(NEWS);
        let mut read = cmd("XREAD");
        options.write_redis_args(&mut read);
        read.arg("STREAMS").arg(&keys).arg(&ids);
        let reply: Option<StreamReadReply> = self.reads.ask(&read).await?;
        let mut found: Vec<RedisResult<Vec<Entry>>> = keys.iter().map(|_| Ok(Vec::new())).collect();
        for stream in reply.into_iter().flat_map(|reply| reply.keys) {
            let at = keys.iter().position(|key| *key == stream.key);
            if let Some(slot) = at.and_then(|at| found.get_mut(at)) {
                *slot = stream.ids.into_iter().map(entry).collect();
            }
        }
        Ok(found)
    }

    /// Which of these runs have a stream.
    pub async fn exist(&self, runs: &[RunId]) -> RedisResult<Vec<bool>> {
        let mut commands = pipe();
        for run in runs {
            commands.exists(self.key(*run));
        }
        self.reads.ask_all(&commands).await
    }
}

/// An entry's events. The terminal entry says their number, the others are named by it.
fn entry(found: StreamId) -> RedisResult<Entry> {
    if found.id == OPENED {
        return Ok(Entry { id: found.id, first: 0, events: Vec::new(), forgotten: false });
    }
    let lines: String = found.get("e").ok_or_else(|| malformed("an entry has no events"))?;
    let events = wire::read(&lines).map_err(|_| malformed("an entry's events are not understood"))?;
    let first = if found.id == END {
        found.get("f")
    } else {
        found.id.split_once('-').and_then(|(id, _)| id.parse::<u64>().ok()?.checked_sub(1))
    };
    let first = first.ok_or_else(|| malformed("an entry has no number"))?;
    let forgotten = found.get::<String>("x").is_some();
    Ok(Entry { id: found.id, first, events, forgotten })
}

fn milliseconds(time: Duration) -> u64 {
    // Redis refuses what overflows when it adds the present time.
    time.as_millis().clamp(1, 1 << 50) as u64
}

fn malformed(what: &'static str) -> RedisError {
    RedisError::from((ErrorKind::Parse, what))
}

fn unwritable(error: serde_json::Error) -> RedisError {
    RedisError::from((ErrorKind::Client, "an event is no JSON", error.to_string()))
}
