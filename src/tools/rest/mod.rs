//! Tools declared as data: each is one REST call, made of what a file says and of the model's arguments, or an answer that
//! needs none.
//!
//! **Invariant:** an argument fills one placeholder (one path segment, one parameter, one field of the body) and
//! changes nothing else. **Invariant:** a write is never sent without the key of its run and call.

pub mod answer;
pub mod arguments;
pub mod command;
pub mod data;
pub mod declared;
mod directive_tool;
pub mod lookup;
pub mod moves;
pub mod naming;
pub mod path;
pub mod projection;
pub mod reading;
pub mod registry;
pub mod request;
pub mod rules;
pub mod titles;
mod tool;
pub mod values;
