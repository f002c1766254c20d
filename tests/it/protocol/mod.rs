//! The Agent Chat Protocol, section by section: HTTP bytes in, SSE text out.

mod connection;
mod errors;
mod events;
mod lines;
mod looping;
mod memory;
mod model_choice;
mod request;
