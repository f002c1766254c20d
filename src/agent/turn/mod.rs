//! The loop: requests to a model, its answers, and the commits of both.

mod aside;
mod ask;
mod calls;
mod capacity;
mod charge;
pub mod context;
mod diagnosis;
mod ending;
pub mod fold;
pub mod language;
mod ledger;
pub mod markers;
mod messages;
mod moves;
mod origin;
mod part;
mod pending;
mod plans;
mod prepare;
mod repeats;
pub mod run;
mod speech;
mod state;
mod steps;
pub mod stop;
mod tries;
