//! Tools declared as data: each is one REST call, made of what a file says and of the model's arguments.
//!
//! **Invariant:** an argument is a value in its place (one path segment, one parameter, one field of the body) and
//! never chooses the place. **Invariant:** a write is never sent without the key of its run and call.

pub mod arguments;
pub mod data;
pub mod lookup;
pub mod path;
pub mod projection;
pub mod reading;
pub mod request;
pub mod tool;
pub mod values;
