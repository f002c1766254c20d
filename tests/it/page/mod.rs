//! The chat page: what is served and with which headers, who is signed in by it, whom it offers, and its client library.

mod assets;
mod client;
mod profiles;
mod session;
