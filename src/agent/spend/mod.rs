//! What runs may cost, and what they have cost: prices of models, budgets of users and tenants, bounds of a run.

pub mod budget;
pub mod limits;
pub mod prices;
pub(super) mod tally;
