//! Scripts that Redis runs in one step: four that write a stream, and one that counts starts.

use std::sync::OnceLock;
use std::time::Duration;

use redis::{Cmd, ErrorKind, FromRedisValue, RedisResult, Script, ServerErrorKind, ToRedisArgs, cmd, pipe};

use super::link::{Link, RESPONSE, has_no_answer, within};

/// Begins a stream with an entry without events. Run twice, it is done once. ARGV: the entry's id, milliseconds to
/// live.
pub static OPEN: Lua = Lua::new(
    r"
    local added = redis.pcall('XADD', KEYS[1], ARGV[1], 'e', '')
    if type(added) == 'table' and added.err and redis.call('EXISTS', KEYS[1]) == 0 then return added end
    redis.call('PEXPIRE', KEYS[1], ARGV[2])
    return 1
    ",
);

/// Adds a batch and an end, each only where there is one. Run twice, it is done once: the answer is empty then too.
/// Where another replica has ended the stream, the answer is the end's number, the event, and a text that is not empty
/// where the stream is forgotten. ARGV: batch id, batch, end, end's number, the least id to keep or an empty text,
/// milliseconds to live.
pub static APPEND: Lua = Lua::new(
    r"
    local last = '18446744073709551615-18446744073709551615'
    local function add(id, ...)
        local added = redis.pcall('XADD', KEYS[1], id, 'e', ...)
        if type(added) ~= 'table' or not added.err then return nil end
        local there = redis.call('XRANGE', KEYS[1], id, id)[1]
        if there and there[2][2] == (...) then return nil end
        return added
    end
    local refused
    if ARGV[2] ~= '' then refused = add(ARGV[1], ARGV[2]) end
    if not refused and ARGV[3] ~= '' then refused = add(last, ARGV[3], 'f', ARGV[4]) end
    if refused then
        local stop = redis.call('XRANGE', KEYS[1], last, last)[1]
        if stop then return {stop[2][4], stop[2][2], stop[2][6] or ''} end
        return refused
    end
    if ARGV[5] ~= '' then redis.call('XTRIM', KEYS[1], 'MINID', '~', ARGV[5]) end
    redis.call('PEXPIRE', KEYS[1], ARGV[6])
    return {}
    ",
);

/// Ends a stream that is there and has no end, numbering after its last event. Where another number is expected,
/// removes it and answers -1. ARGV: end, its number or an empty text, milliseconds to live.
pub static SEAL: Lua = Lua::new(
    r"
    local last = '18446744073709551615-18446744073709551615'
    local entry = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)[1]
    if not entry or entry[1] == last then return 0 end
    local _, breaks = string.gsub(entry[2][2], '\n', '')
    local number = string.format('%.0f', tonumber(string.match(entry[1], '^%d+')) + breaks)
    if ARGV[2] ~= '' and ARGV[2] ~= number then
        redis.call('UNLINK', KEYS[1])
        return -1
    end
    redis.call('XADD', KEYS[1], last, 'e', ARGV[1], 'f', number)
    redis.call('PEXPIRE', KEYS[1], ARGV[3])
    return 1
    ",
);

/// Removes a stream. One without an end is replaced by an end with the mark `x`, numbered after its last event. ARGV:
/// end, milliseconds for it to live. Run twice, it is done once.
pub static FORGET: Lua = Lua::new(
    r"
    local last = '18446744073709551615-18446744073709551615'
    local entry = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)[1]
    if not entry or entry[2][5] == 'x' then return 0 end
    redis.call('UNLINK', KEYS[1])
    if entry[1] == last then return 1 end
    local _, breaks = string.gsub(entry[2][2], '\n', '')
    local number = string.format('%.0f', tonumber(string.match(entry[1], '^%d+')) + breaks)
    redis.call('XADD', KEYS[1], last, 'e', ARGV[1], 'f', number, 'x', '1')
    redis.call('PEXPIRE', KEYS[1], ARGV[2])
    return 1
    ",
);

/// Takes one start of a user: the generic cell rate algorithm, by the server's clock, in microseconds. The answer is how many
/// are left and 0, or -1 and how long to wait. ARGV: time between two starts, starts at once.
pub static TAKE_START: Lua = Lua::new(
    r"
    local time = redis.call('TIME')
    local now = time[1] * 1000000 + time[2]
    local period, burst = tonumber(ARGV[1]), tonumber(ARGV[2])
    local paid = tonumber(redis.call('GET', KEYS[1]) or now)
    if paid < now then paid = now end
    local next = paid + period
    local left = now + burst * period - next
    if left < 0 then return {-1, -left} end
    redis.call('SET', KEYS[1], string.format('%.0f', next), 'PX', math.ceil((next - now) / 1000))
    return {math.floor(left / period), 0}
    ",
);

/// A script, named by its digest where the server has it already.
pub struct Lua {
    code: &'static str,
    digest: OnceLock<String>,
}

impl Lua {
    const fn new(code: &'static str) -> Self {
        Self { code, digest: OnceLock::new() }
    }

    fn digest(&self) -> &str {
        self.digest.get_or_init(|| Script::new(self.code).get_hash().to_owned())
    }
}

/// A script for one key, with its arguments: one command.
pub struct Call {
    script: &'static Lua,
    key: String,
    arguments: Vec<Vec<u8>>,
}

impl Call {
    /// The script for `key`, without arguments.
    pub fn new(script: &'static Lua, key: String) -> Self {
        Self { script, key, arguments: Vec::new() }
    }

    /// The same with one argument more.
    pub fn arg(mut self, argument: impl ToRedisArgs) -> Self {
        argument.write_redis_args(&mut self.arguments);
        self
    }

    /// The script's answer. It may have run even when this fails.
    pub async fn ask<T: FromRedisValue>(&self, link: &Link) -> RedisResult<T> {
        match link.ask(&self.command("EVALSHA", self.script.digest())).await {
            Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
                link.ask(&self.command("EVAL", self.script.code)).await
            }
            answer => answer,
        }
    }

    /// The same for a script that does no harm when it is run twice, run again for up to `limit`.
    pub async fn ask_again<T: FromRedisValue>(&self, link: &Link, limit: Duration) -> RedisResult<T> {
        match link.ask_again(&self.command("EVALSHA", self.script.digest()), limit).await {
            Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
                link.ask_again(&self.command("EVAL", self.script.code), limit).await
            }
            answer => answer,
        }
    }

    /// The same for a script that does no harm when it is run twice: run once more when there is no answer, since a
    /// connection that has been idle is found dead only by using it, but for no longer than one answer may take.
    pub async fn ask_twice<T: FromRedisValue>(&self, link: &Link) -> RedisResult<T> {
        let answer = async {
            match self.ask(link).await {
                Err(error) if has_no_answer(&error) => self.ask(link).await,
                answer => answer,
            }
        };
        within(RESPONSE, answer).await
    }

    /// Runs one script for several keys, which does no harm when it is run twice, in one round trip.
    pub async fn ask_all(calls: impl Iterator<Item = Self>, link: &Link) -> RedisResult<()> {
        let mut commands = pipe();
        for (at, call) in calls.enumerate() {
            // The first one brings the code for all.
            let command = match at {
                0 => call.command("EVAL", call.script.code),
                _ => call.command("EVALSHA", call.script.digest()),
            };
            commands.add_command(command).ignore();
        }
        let answer = async {
            match link.ask_all(&commands).await {
                Err(error) if has_no_answer(&error) => link.ask_all(&commands).await,
                answer => answer,
            }
        };
        within(RESPONSE, answer).await
    }

    fn command(&self, name: &str, script: &str) -> Cmd {
        let mut command = cmd(name);
        command.arg(script).arg(1).arg(&self.key).arg(&self.arguments);
        command
    }
}
