//! The loop: what a model is asked, what comes of its answer, and what is committed of both.

mod ask;
mod calls;
mod charge;
pub mod context;
mod diagnosis;
mod ending;
pub mod fold;
pub mod language;
pub mod markers;
mod pending;
mod prepare;
mod repeats;
pub mod run;
mod speech;
mod state;
pub mod stop;
mod tries;
