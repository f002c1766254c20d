//! Switchboard: one server that connects any front end to any language model and any REST backend.
//!
//! A browser posts a chat turn, the server runs a bounded agentic loop (model → tools → model …) and streams what
//! happens as Server-Sent Events.
//!
//! # Layout: nouns at the bottom, the loop above them, vendors and wires at the edges, one file that plugs them
//! together
//!
//! ```text
//! main         the command line
//! app          composition root: Config -> App; only it names every floor
//! telemetry    the log, and traces
//! probe        what a model really does, for check-config --probe
//! healthcheck  GET /livez, for images without curl
//! config       FLOOR 4  settings in layers; profiles and tool definitions as domain types
//! http         FLOOR 3  the product's HTTP surface: routes, identity, streams, problem+json
//! runs         FLOOR 3  a run's life apart from its connection, and its events (in process or in Redis)
//! directives   FLOOR 3  commands that outlive their request: the desk and the runner
//! llm          FLOOR 3  providers: one folder per vendor
//! toolsets     FLOOR 3  families of tools with logic of their own, each behind a cargo feature
//! tools        FLOOR 3  the machinery of tools: toolbox, backend client, declared tools, MCP, previews
//! webhooks     FLOOR 3  signals, delivered to subscribers
//! files        FLOOR 3  files of users: their bytes, beside what is known of them
//! workspace    FLOOR 3  the files that an agent works on, its commands, and what can be taken back
//! store        FLOOR 3  runs, conversations, drafts, previews and the trail, in SQLite or PostgreSQL
//! demo         FLOOR 3  the embedded default: a stand-in model and a small REST backend
//! dialect      FLOOR 2  wire protocols, pure: bytes -> RunInput, AgentEvent -> frames
//! agent        FLOOR 2  the loop, and the ports it sees the world through
//! chat         FLOOR 1  the nouns
//! bounded      FLOOR 0  what the process may hold of what others send: memory, JSON, work aside
//! aws          FLOOR 0  who this server is to Amazon's services: credentials, signatures
//! observe      FLOOR 0  names of spans, metrics, and what a request carries along for them
//! ```
//!
//! Imports point down. On floor 3 `http` uses `runs` and `toolsets` uses `tools`; any other two meet only in
//! `agent::ports`. `tests/it/tidy.rs` holds this, `docs/ARCHITECTURE.md` explains it.

pub mod agent;
pub mod app;
pub mod aws;
pub mod bounded;
pub mod chat;
pub mod config;
#[cfg(feature = "demo")]
pub mod demo;
pub mod dialect;
pub mod directives;
pub mod files;
pub mod healthcheck;
pub mod http;
pub mod llm;
pub mod observe;
pub mod probe;
pub mod runs;
pub mod store;
pub mod telemetry;
pub mod tools;
pub mod toolsets;
pub mod webhooks;
pub mod workspace;
