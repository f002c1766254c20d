//! The Agent Chat Protocol, section by section: HTTP bytes in, SSE text out.

mod errors;
mod events;
mod looping;
mod request;
