//! The one integration test binary.
#![expect(clippy::disallowed_methods, reason = "a test is the owner of its tasks")]

// `cfg(test)` tells clippy that helpers between the tests are test code too, where `unwrap` is the way to fail.
#[cfg(test)]
mod ag_ui;
#[cfg(test)]
mod agent_stream;
#[cfg(test)]
mod ai_sdk;
#[cfg(test)]
mod approvals;
#[cfg(test)]
mod audit;
#[cfg(test)]
mod browser;
#[cfg(test)]
mod buildos_walk;
#[cfg(test)]
mod canary;
#[cfg(test)]
mod chat_message;
#[cfg(test)]
mod chat_stream;
mod circles;
#[cfg(test)]
mod cli;
#[cfg(test)]
mod client_tools;
#[cfg(test)]
mod clients;
#[cfg(test)]
mod conversations;
#[cfg(test)]
mod death;
#[cfg(test)]
mod demo_backend;
#[cfg(test)]
mod demo_walk;
#[cfg(test)]
mod deploy;
#[cfg(test)]
mod description;
#[cfg(test)]
mod directives;
#[cfg(test)]
mod events;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod files;
#[cfg(test)]
mod fleetprompt_walk;
#[cfg(test)]
mod fuzzing;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod identity;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod mcp_server;
#[cfg(test)]
mod messages;
#[cfg(test)]
mod openai;
#[cfg(test)]
mod page;
#[cfg(test)]
mod plans;
#[cfg(test)]
mod profiles;
#[cfg(test)]
mod protocol;
#[cfg(test)]
mod providers;
#[cfg(test)]
mod research_walk;
#[cfg(test)]
mod responses;
#[cfg(test)]
mod runs;
#[cfg(test)]
mod settings;
#[cfg(test)]
mod smithy;
#[cfg(test)]
mod store;
#[cfg(test)]
mod support;
#[cfg(test)]
mod telemetry;
#[cfg(test)]
mod tenants;
#[cfg(test)]
mod tidy;
#[cfg(test)]
mod tools;
#[cfg(test)]
mod vendors;
#[cfg(test)]
mod workspace;
