//! What one more replica costs and brings: one, two, four and eight processes behind nginx, with one PostgreSQL and one Redis,
//! all on the cores of this machine; and what a run asks of the two that all replicas share.
//!
//! With more processes than cores nothing gets faster: what is looked at is what a run costs each part.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use sqlx::{Connection, PgConnection};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::client::Client;
use crate::directives::new_database;
use crate::redis::Redis;
use crate::server::{Role, Server, cpu_of, data};
use crate::tls::Wire;
use crate::upstream::Upstream;

/// How many processes there are.
const REPLICAS: [usize; 4] = [1, 2, 4, 8];

/// Clients, and the runs of each.
const CLIENTS: usize = 32;
const RUNS: usize = 60;

/// A run: a call of a tool, and an answer behind it.
const KIND: &str = "tools 1";

/// All figures. Needs a PostgreSQL that the environment names, and the programs of nginx and Redis.
pub async fn measure(upstream: &Upstream) {
    let Ok(postgres) = std::env::var("SWITCHBOARD_TEST_POSTGRES_URL") else {
        return println!("SKIPPED: SWITCHBOARD_TEST_POSTGRES_URL names no PostgreSQL");
    };
    let mut alone = None;
    for replicas in REPLICAS {
        let seen = with(replicas, upstream, &postgres).await;
        let cpu_us = seen.replicas_us + seen.postgres_us + seen.redis_us;
        let alone = *alone.get_or_insert(cpu_us);
        println!(
            "{replicas} replicas: {:.0} runs/s; a run {cpu_us:.0} us in all (x{:.2}): replicas {:.0}, PostgreSQL {:.0}, Redis {:.0}; \
             {:.1} transactions, {:.1} KB of WAL, {:.1} commands and {:.1} KB to Redis",
            seen.per_second,
            cpu_us / alone,
            seen.replicas_us,
            seen.postgres_us,
            seen.redis_us,
            seen.transactions,
            seen.wal_bytes / 1e3,
            seen.commands,
            seen.redis_bytes / 1e3,
        );
    }
}

/// What a run takes, by parts.
struct Seen {
    per_second: f64,
    replicas_us: f64,
    postgres_us: f64,
    redis_us: f64,
    transactions: f64,
    wal_bytes: f64,
    commands: f64,
    redis_bytes: f64,
}

async fn with(replicas: usize, upstream: &Upstream, postgres: &str) -> Seen {
    let (folder, database) = (tempfile::tempdir().unwrap(), new_database(postgres).await);
    let redis = Redis::start(folder.path()).await.unwrap();
    let url = redis.url();
    let settings = [("STORE__URL", database.as_str()), ("STORE__MAX_CONNECTIONS", "10"), ("EVENTS__URL", url.as_str())];
    let servers: Vec<Server> = (0..replicas)
        .map(|_| Server::start_with(&[], Role::Product, (upstream, Wire::Plain), &data(), &settings))
        .collect();
    let door = Nginx::start(folder.path(), &servers).await;
    rush(door.address, &servers[0].token, 10).await;

    let mut counts = PgConnection::connect(&database).await.unwrap();
    let before = Counts::read(&mut counts, &servers, &redis).await;
    let began = Instant::now();
    rush(door.address, &servers[0].token, RUNS).await;
    let took = began.elapsed();
    // A database tells what its sessions have done a second later.
    sleep(Duration::from_millis(1_500)).await;
    let after = Counts::read(&mut counts, &servers, &redis).await;

    let runs = (CLIENTS * RUNS) as f64;
    Seen {
        per_second: runs / took.as_secs_f64(),
        replicas_us: (after.replicas_s - before.replicas_s) * 1e6 / runs,
        postgres_us: (after.postgres_s - before.postgres_s) * 1e6 / runs,
        redis_us: (after.redis_s - before.redis_s) * 1e6 / runs,
        transactions: (after.transactions - before.transactions) / runs,
        wal_bytes: (after.wal_bytes - before.wal_bytes) / runs,
        commands: (after.commands - before.commands) / runs,
        redis_bytes: (after.redis_bytes - before.redis_bytes) / runs,
    }
}

/// So many runs of each client, one after the other.
async fn rush(address: SocketAddr, token: &str, runs: usize) {
    let mut clients = JoinSet::new();
    for _ in 0..CLIENTS {
        let mut client = Client::connect(address, token).await;
        clients.spawn(async move {
            for _ in 0..runs {
                client.run(KIND).await;
            }
        });
    }
    clients.join_all().await;
}

/// Counts that only grow.
struct Counts {
    replicas_s: f64,
    postgres_s: f64,
    redis_s: f64,
    transactions: f64,
    wal_bytes: f64,
    commands: f64,
    redis_bytes: f64,
}

impl Counts {
    async fn read(connection: &mut PgConnection, servers: &[Server], redis: &Redis) -> Self {
        let (transactions, wal_bytes): (f64, f64) = sqlx::query_as(
            "SELECT CAST(xact_commit AS float8), CAST(pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0') AS float8)
             FROM pg_stat_database WHERE datname = current_database()",
        )
        .fetch_one(connection)
        .await
        .unwrap();
        Self {
            replicas_s: servers.iter().map(Server::cpu_s).sum(),
            postgres_s: cpu_of_all("postgres"),
            redis_s: cpu_of(redis.pid()),
            transactions,
            wal_bytes,
            commands: count(redis, "total_commands_processed"),
            redis_bytes: count(redis, "total_net_input_bytes"),
        }
    }
}

/// A number of Redis's `INFO stats`.
fn count(redis: &Redis, name: &str) -> f64 {
    let stats = redis.info("stats");
    let line = stats.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap().trim().parse().unwrap()
}

/// CPU time of all processes of that name, in seconds. Those that have ended meanwhile do not count, so let none end.
fn cpu_of_all(name: &str) -> f64 {
    let of_process = |process: std::fs::DirEntry| -> Option<f64> {
        let pid: u32 = process.file_name().to_str()?.parse().ok()?;
        let is_named = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?.trim() == name;
        is_named.then(|| cpu_of(pid))
    };
    std::fs::read_dir("/proc").unwrap().filter_map(|process| of_process(process.unwrap())).sum()
}

/// An nginx before all replicas, which asks each in its turn.
struct Nginx {
    child: Child,
    address: SocketAddr,
}

impl Nginx {
    async fn start(folder: &Path, servers: &[Server]) -> Self {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let replicas: String = servers.iter().map(|server| format!("server {};", server.address)).collect();
        let folder = folder.display();
        let config = format!(
            "daemon off; master_process off; pid {folder}/nginx.pid; error_log {folder}/error.log;
             events {{ worker_connections 4096; }}
             http {{
                 access_log off; client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
                 fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
                 keepalive_requests 100000;
                 upstream replicas {{ {replicas} keepalive 64; keepalive_requests 100000; }}
                 server {{
                     listen {free};
                     location / {{
                         proxy_pass http://replicas; proxy_http_version 1.1; proxy_set_header Connection '';
                         proxy_buffering off; proxy_read_timeout 1h;
                     }}
                 }}
             }}"
        );
        let path = format!("{folder}/nginx.conf");
        std::fs::write(&path, config).unwrap();
        let path_of_programs = format!("{}:/usr/sbin", std::env::var("PATH").unwrap_or_default());
        let child = Command::new("nginx").args(["-c", &path]).env("PATH", path_of_programs).spawn().unwrap();
        while std::net::TcpStream::connect(free).is_err() {
            sleep(Duration::from_millis(10)).await;
        }
        Self { child, address: free }
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // One that has ended already cannot be killed.
        let _ = self.child.kill();
        self.child.wait().unwrap();
    }
}
