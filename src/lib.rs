//! Switchboard: one server that connects any front end to any language model and any REST backend.

pub mod agent;
pub mod chat;
pub mod config;
pub mod demo;
pub mod dialect;
pub mod http;
pub mod llm;
pub mod runs;
pub mod store;
pub mod tools;
