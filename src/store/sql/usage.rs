//! The usage of model calls, in SQL: added up by user, day and model, in the transactions that commit their turns.

use std::collections::BTreeMap;

use async_trait::async_trait;

use super::SqlStore;
use crate::agent::ports::store::Commit;
use crate::agent::ports::store_error::StoreError;
use crate::agent::ports::usage::{Of, UsageStore, Used, UsedInConversation, UsedInMonth, UsedOnDay};
use crate::chat::caller::Owner;
use crate::chat::cost::Cost;
use crate::chat::day::{Day, Days};
use crate::chat::stream::Spent;
use crate::store::database::Connection;
use crate::store::fault::{Fault, attempt};
use crate::store::record::column;
use crate::store::scope::{Reach, Scope, original, storable};
use crate::store::statement::{Batch, query};

/// How long what was used is kept, in days: thirteen months, so that a month can be compared with that of a year before.
pub(super) const KEPT_DAYS: i64 = 400;

#[async_trait]
impl UsageStore for SqlStore {
    async fn used(&self, of: Of<'_>, days: Days) -> Result<Used, StoreError> {
        attempt("add up what was used", self.try_used(of, days)).await
    }

    async fn used_by_day(&self, of: Of<'_>, days: Days, most: u32) -> Result<Vec<UsedOnDay>, StoreError> {
        attempt("list what was used", self.try_used_by_day(of, days, most)).await
    }

    async fn used_by_month(&self, of: Of<'_>, days: Days, most: u32) -> Result<Vec<UsedInMonth>, StoreError> {
        attempt("list what was used by month", self.try_used_by_month(of, days, most)).await
    }

    async fn used_by_conversation(
        &self,
        owner: &Owner,
        days: Days,
        most: u32,
    ) -> Result<Vec<UsedInConversation>, StoreError> {
        attempt("list what conversations have used", self.try_used_by_conversation(&owner.into(), days, most)).await
    }

    async fn charge(&self, owner: &Owner, spent: &[Spent]) -> Result<(), StoreError> {
        attempt("charge what was used", self.try_charge(&owner.into(), spent)).await
    }
}

/// The most that one row holds of a thing: more than any user takes on a day, and so little that nine thousand rows of
/// it can be added up. It stands in `sum_of!` too.
const MOST: i64 = 1_000_000_000_000_000;

/// A column with what is new, where neither is more than [`MOST`], and then the sum is not.
macro_rules! sum_of {
    ($column:literal) => {
        concat!(
            "CASE WHEN usage_daily.",
            $column,
            " > 1000000000000000 - excluded.",
            $column,
            " THEN 1000000000000000 ELSE usage_daily.",
            $column,
            " + excluded.",
            $column,
            " END"
        )
    };
}

/// The end of a statement that adds rows to those that are there.
macro_rules! add_up {
    () => {
        concat!(
            " ON CONFLICT (tenant, user_id, day, model) DO UPDATE SET
                 runs = usage_daily.runs + excluded.runs, turns = usage_daily.turns + excluded.turns, input_tokens = ",
            sum_of!("input_tokens"),
            ", output_tokens = ",
            sum_of!("output_tokens"),
            ", cached_input_tokens = ",
            sum_of!("cached_input_tokens"),
            ", nano_usd = ",
            sum_of!("nano_usd"),
        )
    };
}

/// The sums of a group of rows. PostgreSQL adds up to a wider type, in which no row could be read.
macro_rules! sums {
    () => {
        "CAST(COALESCE(SUM(runs), 0) AS BIGINT) AS runs, CAST(COALESCE(SUM(turns), 0) AS BIGINT) AS turns,
         CAST(COALESCE(SUM(input_tokens), 0) AS BIGINT) AS input_tokens,
         CAST(COALESCE(SUM(output_tokens), 0) AS BIGINT) AS output_tokens,
         CAST(COALESCE(SUM(cached_input_tokens), 0) AS BIGINT) AS cached_input_tokens,
         CAST(COALESCE(SUM(nano_usd), 0) AS BIGINT) AS nano_usd"
    };
}

#[derive(sqlx::FromRow)]
pub(super) struct SumRow {
    runs: i64,
    turns: i64,
    input_tokens: i64,
    output_tokens: i64,
    cached_input_tokens: i64,
    nano_usd: i64,
}

#[derive(sqlx::FromRow)]
struct DayRow {
    day: i64,
    model: String,
    #[sqlx(flatten)]
    sum: SumRow,
}

#[derive(sqlx::FromRow)]
struct MonthRow {
    month: String,
    model: String,
    #[sqlx(flatten)]
    sum: SumRow,
}

impl From<SumRow> for Used {
    fn from(row: SumRow) -> Self {
        let number = |column: i64| u64::try_from(column).unwrap_or_default();
        Self {
            runs: number(row.runs),
            turns: number(row.turns),
            input_tokens: number(row.input_tokens),
            output_tokens: number(row.output_tokens),
            cached_input_tokens: number(row.cached_input_tokens),
            cost: Cost { nano_usd: number(row.nano_usd) },
        }
    }
}

impl SqlStore {
    async fn try_used(&self, of: Of<'_>, days: Days) -> Result<Used, Fault> {
        let row: SumRow = match of {
            Of::User(owner) => {
                let scope = Scope::from(owner);
                query(concat!(
                    "SELECT ",
                    sums!(),
                    " FROM usage_daily WHERE tenant = $1 AND user_id = $2 AND day BETWEEN $3 AND $4",
                ))
                .bind((&scope, days.from.0, days.to.0))
                .fetch_one(&mut self.database.reading(Reach::User(&scope)).await?)
                .await?
            }
            Of::Tenant(tenant) => {
                let scope = Scope::of_row(storable(tenant).into_owned(), String::new());
                query(concat!("SELECT ", sums!(), " FROM usage_daily WHERE tenant = $1 AND day BETWEEN $2 AND $3",))
                    .bind((scope.tenant(), days.from.0, days.to.0))
                    .fetch_one(&mut self.database.reading(Reach::Tenant(&scope)).await?)
                    .await?
            }
        };
        Ok(row.into())
    }

    async fn try_charge(&self, scope: &Scope, spent: &[Spent]) -> Result<(), Fault> {
        let mut batch = Batch::default();
        add(&mut batch, scope, spent, false);
        batch.commit(self.database.write(Reach::User(scope)).await?).await?;
        Ok(())
    }

    async fn try_used_by_day(&self, of: Of<'_>, days: Days, most: u32) -> Result<Vec<UsedOnDay>, Fault> {
        let rows: Vec<DayRow> = match of {
            Of::User(owner) => {
                let scope = Scope::from(owner);
                query(concat!(
                    "SELECT day, model, ",
                    sums!(),
                    " FROM usage_daily WHERE tenant = $1 AND user_id = $2 AND day BETWEEN $3 AND $4
                     GROUP BY day, model ORDER BY day DESC, model LIMIT $5",
                ))
                .bind((&scope, days.from.0, days.to.0, i64::from(most)))
                .fetch_all(&mut self.database.reading(Reach::User(&scope)).await?)
                .await?
            }
            Of::Tenant(tenant) => {
                let scope = Scope::of_row(storable(tenant).into_owned(), String::new());
                query(concat!(
                    "SELECT day, model, ",
                    sums!(),
                    " FROM usage_daily WHERE tenant = $1 AND day BETWEEN $2 AND $3
                     GROUP BY day, model ORDER BY day DESC, model LIMIT $4",
                ))
                .bind((scope.tenant(), days.from.0, days.to.0, i64::from(most)))
                .fetch_all(&mut self.database.reading(Reach::Tenant(&scope)).await?)
                .await?
            }
        };
        let on_day = |row: DayRow| UsedOnDay {
            day: Day(row.day),
            model: original(&row.model).into_owned(),
            used: row.sum.into(),
        };
        Ok(rows.into_iter().map(on_day).collect())
    }

    async fn try_used_by_month(&self, of: Of<'_>, days: Days, most: u32) -> Result<Vec<UsedInMonth>, Fault> {
        let rows: Vec<MonthRow> = match of {
            Of::User(owner) => {
                let scope = Scope::from(owner);
                query(concat!(
                    "SELECT month, model, ",
                    sums!(),
                    " FROM (SELECT u.*, @month(u.day) AS month FROM usage_daily u
                            WHERE u.tenant = $1 AND u.user_id = $2 AND u.day BETWEEN $3 AND $4) AS in_months
                     GROUP BY month, model ORDER BY month DESC, model LIMIT $5",
                ))
                .bind((&scope, days.from.0, days.to.0, i64::from(most)))
                .fetch_all(&mut self.database.reading(Reach::User(&scope)).await?)
                .await?
            }
            Of::Tenant(tenant) => {
                let scope = Scope::of_row(storable(tenant).into_owned(), String::new());
                query(concat!(
                    "SELECT month, model, ",
                    sums!(),
                    " FROM (SELECT u.*, @month(u.day) AS month FROM usage_daily u
                            WHERE u.tenant = $1 AND u.day BETWEEN $2 AND $3) AS in_months
                     GROUP BY month, model ORDER BY month DESC, model LIMIT $4",
                ))
                .bind((scope.tenant(), days.from.0, days.to.0, i64::from(most)))
                .fetch_all(&mut self.database.reading(Reach::Tenant(&scope)).await?)
                .await?
            }
        };
        let in_month = |row: MonthRow| UsedInMonth {
            month: row.month,
            model: original(&row.model).into_owned(),
            used: row.sum.into(),
        };
        Ok(rows.into_iter().map(in_month).collect())
    }
}

/// What a commit has spent that its owner is not charged with yet.
pub(super) struct Charge<'a> {
    spent: &'a [Spent],
    begins_run: bool,
    /// How many of the run's are charged behind this.
    pub(super) upto: i64,
}

impl<'a> Charge<'a> {
    /// `charged` of the run's are charged, says its row, which this transaction holds. `None` when nothing is new.
    pub(super) fn of(commit: Commit<'a>, charged: i64) -> Option<Self> {
        let first = i64::from(commit.first_spent);
        let known = usize::try_from(charged.saturating_sub(first)).unwrap_or_default();
        let spent = commit.spent.get(known..).filter(|new| !new.is_empty())?;
        let upto = first.saturating_add(i64::try_from(commit.spent.len()).unwrap_or(i64::MAX));
        Some(Self { spent, begins_run: charged == 0, upto })
    }
}

/// Adds it to what its owner has used. Last of all that a transaction does, since others of this user wait for it.
pub(super) fn charge(batch: &mut Batch, scope: &Scope, new: Charge<'_>) {
    add(batch, scope, new.spent, new.begins_run);
}

/// What the user has used goes on counting for their tenant, as that of no user.
pub(super) async fn leave_to_tenant(connection: &mut dyn Connection, scope: &Scope) -> Result<(), Fault> {
    let add = query(concat!(
        "INSERT INTO usage_daily (tenant, user_id, day, model, runs, turns, input_tokens, output_tokens,
             cached_input_tokens, nano_usd)
         SELECT tenant, '', day, model, runs, turns, input_tokens, output_tokens, cached_input_tokens, nano_usd
             FROM usage_daily WHERE tenant = $1 AND user_id = $2 AND user_id <> '' ORDER BY day, model",
        add_up!(),
    ));
    add.bind(scope).execute(&mut *connection).await?;
    let leave = query("DELETE FROM usage_daily WHERE tenant = $1 AND user_id = $2 AND user_id <> ''");
    leave.bind(scope).execute(&mut *connection).await?;
    Ok(())
}

/// Adds it to what the owner has used; `begins_run`: the first of them is the first one of its run.
fn add(batch: &mut Batch, scope: &Scope, spent: &[Spent], begins_run: bool) {
    // In this order, so that no two transactions wait for each other.
    let mut sums: BTreeMap<(i64, String), Used> = BTreeMap::new();
    for (at, Spent { at_ms, origin, usage, cost }) in spent.iter().enumerate() {
        let model = storable(&format!("{}:{}", origin.provider, origin.model)).into_owned();
        let sum = sums.entry((Day::of_ms(*at_ms).0, model)).or_default();
        sum.runs += u64::from(begins_run && at == 0);
        sum.turns += 1;
        sum.input_tokens = sum.input_tokens.saturating_add(usage.input_tokens);
        sum.output_tokens = sum.output_tokens.saturating_add(usage.output_tokens);
        sum.cached_input_tokens = sum.cached_input_tokens.saturating_add(usage.cached_input_tokens);
        sum.cost += cost.unwrap_or_default();
    }
    for ((day, model), used) in sums {
        let add = batch.change(
            "usage_daily",
            concat!(
                "INSERT INTO usage_daily (tenant, user_id, day, model, runs, turns, input_tokens, output_tokens,
                 cached_input_tokens, nano_usd)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
                add_up!(),
            ),
        );
        let add = add.bind((scope, day, model, column(used.runs), column(used.turns)));
        let add = add.bind((column(used.input_tokens).min(MOST), column(used.output_tokens).min(MOST)));
        add.bind((column(used.cached_input_tokens).min(MOST), column(used.cost.nano_usd).min(MOST)));
    }
}
