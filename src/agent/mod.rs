//! The agentic loop: model → tools → model, bounded, until an answer stands. It sees the world through [`ports`] only.
//!
//! ```text
//! RunInput ──begin_run──▶ history + message
//!   turn 0..max_turns:   prompt + history + tools ──LlmProvider──▶ StreamEvent* ──TurnFold──▶ AgentEvent*
//!     no calls  ─▶ language gate ─▶ commit ─▶ Finished
//!     calls     ─▶ ToolExecutor ─▶ ToolCallFinished, Artifact* ─▶ commit ─▶ next turn
//!   limit, error, cancel ─▶ keep what was said ─▶ Failed / Cancelled
//! ```
//!
//! **Invariant:** nothing here names a vendor, a wire, a database, a product or an SSE event.

mod ask;
pub mod budget;
mod calls;
mod charge;
mod client;
pub mod consent;
mod diagnosis;
mod ending;
pub mod fence;
pub mod language;
pub mod limits;
pub mod markers;
pub mod menu;
pub mod offer;
mod pending;
pub mod ports;
mod prepare;
pub mod prices;
pub mod profile;
pub mod prompt;
mod repeats;
pub mod run;
pub mod selection;
mod speech;
mod state;
pub mod stop;
pub mod summary;
mod tally;
mod tries;
pub mod turn;
