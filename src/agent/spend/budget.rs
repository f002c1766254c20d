//! Budgets of users and tenants: checked before each model call, and cached for a few seconds, so that a run of many
//! turns does not query the store for each. Usage is charged with the commit of its turn, and that of summaries and of
//! runs that another process has ended by itself; usage that this process has seen since its query counts at once. So a
//! budget may be passed by the turns that are under way, and by the usage of other processes in those seconds.

use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use moka::future::Cache;

use crate::agent::ports::clock::Clock;
use crate::agent::ports::store_error::StoreError;
use crate::agent::ports::usage::{Of, UsageStore, Used};
use crate::chat::caller::Owner;
use crate::chat::cost::Cost;
use crate::chat::day::{Day, Days};
use crate::chat::stream::{Spent, Usage};

/// How long an answer of the store is used.
const REMEMBERED: Duration = Duration::from_secs(5);

/// How many answers are remembered, oldest out first.
const REMEMBERED_AT_MOST: u64 = 10_000;

/// The budgets; `None` is without limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Budget {
    /// Tokens of a user on a day, prompt and answer together.
    pub tokens_per_user_day: Option<u64>,
    /// Money of a tenant in a month. Models without a price cost nothing.
    pub cost_per_tenant_month: Option<Cost>,
}

/// A budget that is used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Over {
    /// When there is a new one, in seconds, at least 1.
    pub retry_after_s: u32,
}

/// The budgets of all.
pub struct Budgets {
    budget: Budget,
    store: Arc<dyn UsageStore>,
    clock: Arc<dyn Clock>,
    tokens: Cache<(Owner, Day), Arc<AtomicU64>>,
    money: Cache<(String, Day), Arc<AtomicU64>>,
}

impl Budgets {
    /// Budgets of `budget`, as `store` tells what was used.
    pub fn new(budget: Budget, store: Arc<dyn UsageStore>, clock: Arc<dyn Clock>) -> Self {
        Self { budget, store, clock, tokens: few(), money: few() }
    }

    /// The budget of the owner's that is used up, if there is one.
    ///
    /// # Errors
    /// When the store failed.
    pub async fn check(&self, owner: &Owner) -> Result<Option<Over>, StoreError> {
        let now_ms = self.clock.now_ms();
        let today = Day::of_ms(now_ms);
        if let Some(most) = self.budget.tokens_per_user_day {
            let days = Days { from: today, to: today };
            let query = async {
                let Used { input_tokens, output_tokens, .. } = self.store.used(Of::User(owner), days).await?;
                Ok::<_, StoreError>(Arc::new(AtomicU64::new(input_tokens.saturating_add(output_tokens))))
            };
            let used = self.tokens.try_get_with((owner.clone(), today), query).await.map_err(remembered)?;
            if used.load(Ordering::Relaxed) >= most {
                return Ok(Some(Over::until(today.plus(1), now_ms)));
            }
        }
        if let Some(most) = self.budget.cost_per_tenant_month {
            let month = today.month();
            let query = async {
                let used = self.store.used(Of::Tenant(&owner.tenant), month).await?;
                Ok::<_, StoreError>(Arc::new(AtomicU64::new(used.cost.nano_usd)))
            };
            let used = self.money.try_get_with((owner.tenant.clone(), month.from), query).await.map_err(remembered)?;
            if used.load(Ordering::Relaxed) >= most.nano_usd {
                return Ok(Some(Over::until(month.to.plus(1), now_ms)));
            }
        }
        Ok(None)
    }

    /// Charges what no commit of a run brings to the store. It was counted before, by [`Self::spend`].
    ///
    /// # Errors
    /// When it could not be committed.
    pub(in crate::agent) async fn charge(&self, owner: &Owner, spent: &[Spent]) -> Result<(), StoreError> {
        match spent {
            [] => Ok(()),
            spent => self.store.charge(owner, spent).await,
        }
    }

    /// Counts what a turn has used, until the next query of the store.
    pub(in crate::agent) async fn spend(&self, owner: &Owner, usage: Usage, cost: Option<Cost>) {
        let today = Day::of_ms(self.clock.now_ms());
        if self.budget.tokens_per_user_day.is_some()
            && let Some(used) = self.tokens.get(&(owner.clone(), today)).await
        {
            add(&used, usage.input_tokens.saturating_add(usage.output_tokens));
        }
        if let (Some(_), Some(cost)) = (self.budget.cost_per_tenant_month, cost)
            && let Some(used) = self.money.get(&(owner.tenant.clone(), today.month().from)).await
        {
            add(&used, cost.nano_usd);
        }
    }
}

impl Over {
    fn until(day: Day, now_ms: i64) -> Self {
        let left_s = (day.begins_ms().saturating_sub(now_ms)).max(0).saturating_add(999) / 1000;
        Self { retry_after_s: u32::try_from(left_s).unwrap_or(u32::MAX).max(1) }
    }
}

/// Adds, and stays at the largest number there is rather than begin again.
fn add(used: &AtomicU64, more: u64) {
    let _ = used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| Some(used.saturating_add(more)));
}

/// An empty cache of bounded size and age.
fn few<K: Hash + Eq + Send + Sync + 'static>() -> Cache<K, Arc<AtomicU64>> {
    Cache::builder().max_capacity(REMEMBERED_AT_MOST).time_to_live(REMEMBERED).build()
}

/// Whoever waited for the same answer gets the same error.
fn remembered(error: Arc<StoreError>) -> StoreError {
    StoreError::Unavailable(Box::new(error))
}
