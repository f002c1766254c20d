//! The command line: the real binary, run in a folder of its own.

mod backend_tokens;
mod clouds;
mod commands;
mod model_failures;
mod probe;
mod secrets;
mod serving;
