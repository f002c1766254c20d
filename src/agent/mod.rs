//! The agentic loop: model → tools → model, bounded, until an answer stands. It sees the world through [`ports`] only.
//!
//! ```text
//! RunInput ──begin_run──▶ history + message
//!   turn 0..max_turns:   prompt + history + tools ──LlmProvider──▶ StreamEvent* ──TurnFold──▶ AgentEvent*
//!     no calls  ─▶ language gate ─▶ commit ─▶ Finished
//!     calls     ─▶ ToolExecutor ─▶ ToolCallFinished, Artifact* ─▶ commit ─▶ next turn
//!   limit, error, cancel ─▶ keep the text so far ─▶ Failed / Cancelled
//! ```
//!
//! Four folders: [`turn`] runs the loop and commits its results, [`offer`] decides who answers and with which tools,
//! [`prompt`] adds what the model reads besides, and [`spend`] bounds the cost.
//!
//! **Invariant:** nothing here names a vendor, a wire, a database, a product or an SSE event.

pub mod clarify;
pub mod lenient;
pub mod offer;
pub mod plans;
pub mod ports;
pub mod prompt;
pub mod recap;
pub mod spend;
pub mod turn;
