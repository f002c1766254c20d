//! The chat page: what is served and with which headers, who is signed in by it, whom it offers, its client library, and what
//! its user sees in a browser.

mod assets;
mod chat;
mod client;
mod profiles;
mod session;
