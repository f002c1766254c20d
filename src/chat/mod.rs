//! The nouns of the product, vendor-neutral and wire-neutral: callers, messages, the events of models and of the loop.
//! Everything above uses these types.
//!
//! **Invariant:** pure data. No I/O, no async, no `Serialize`: whoever needs a wire or a row writes its own
//! counterpart.

pub mod answer;
pub mod answer_format;
pub mod approval;
pub mod artifact;
pub mod audit;
pub mod caller;
pub mod causes;
pub mod clarification;
pub mod cost;
pub mod day;
pub mod digest;
pub mod directive;
pub mod event;
pub mod failure;
pub mod fate;
pub mod feedback;
pub mod file;
pub mod fit;
pub mod ids;
pub mod input;
pub mod labels;
pub mod line;
pub mod message;
pub mod model;
pub mod names;
pub mod nesting;
pub mod notice;
pub mod observation;
pub mod operation;
pub mod origin;
pub mod patterns;
pub mod payload;
pub mod place;
pub mod plan;
pub mod preview;
pub mod run;
pub mod schema;
pub mod screen;
pub mod session;
pub mod signal;
pub mod state;
pub mod stream;
pub mod template;
pub mod tool;
pub mod trail;
pub mod unfinished;
pub mod worded;
