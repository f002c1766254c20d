//! The cost of runs: prices of models, budgets of users and tenants, bounds of a run.

pub mod budget;
pub mod limits;
pub mod prices;
pub(super) mod tally;
