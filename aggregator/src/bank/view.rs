//! An account of the bank as it is shown: to people, to programs, in metrics.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use steward_common::bank::charge::Charges;
use steward_common::bank::{Account, Forecast, Mechanism, Standing, Units};
use steward_common::limit::Limit;

use super::Bank;
use super::check::Now;
use crate::store::StoreError;
use crate::store::holds::Hold;

/// The days by which it is told how fast units are used.
const RECENT: i64 = 30;

/// An account with all that is known of it.
#[derive(Clone, Debug)]
pub struct View {
    /// What may be used.
    pub account: Account,
    /// What Slurm says was used, by cluster; `None` if it was not asked.
    pub used: Option<BTreeMap<String, Option<Units>>>,
    /// What accounts right below it used, of which Slurm says something: it is in what this one used.
    pub below: BTreeMap<String, Units>,
    /// Where it stands; `None` if Slurm was not asked.
    pub standing: Option<Standing>,
    /// Holds of the bank.
    pub holds: Vec<Hold>,
    /// When nothing will be left; `None` if that cannot be told.
    pub forecast: Option<Forecast>,
}

impl Bank {
    /// The accounts of these names, or all, with what Slurm says if it was asked.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn views(
        &self,
        only: Option<&str>,
        now: Option<&Now>,
    ) -> Result<Vec<View>, StoreError> {
        let holds = self.store.holds().await?;
        let mut views = Vec::new();
        for (name, account) in self.store.accounts().await? {
            if only.is_some_and(|only| only != name) {
                continue;
            }
            let used = now.map(|now| now.usage(&name));
            let levels = self.config.bank.levels();
            let standing =
                used.as_ref().map(|used| Standing::new(&account.allocation(), used, &levels));
            let own = holds.values().filter(|hold| hold.account == name);
            let (below, holds) = (now.map(|now| now.below(&name)), own.cloned().collect());
            let below = below.unwrap_or_default();
            let mut view = View { account, used, below, standing, holds, forecast: None };
            view.forecast = self.forecast(&view).await?;
            views.push(view);
        }
        Ok(views)
    }

    /// Goes on with what was charged in the last days, else with what was used since the proposal began.
    async fn forecast(&self, view: &View) -> Result<Option<Forecast>, StoreError> {
        let Some(standing) = &view.standing else { return Ok(None) };
        let Some(left) = standing.left() else { return Ok(None) };
        let account = &view.account;
        let today = self.today();
        let charges = Charges::of(&self.store.entries(&account.name).await?);
        let recent: Vec<Units> = (charges.days.iter())
            .filter(|((_, day), _)| (1..=RECENT).contains(&today.since(*day)))
            .map(|(_, units)| *units)
            .collect();
        let age = today.since(account.start);
        let (used, days) = if recent.is_empty() {
            (standing.used, age)
        } else {
            (recent.into_iter().sum(), age.min(RECENT))
        };
        Ok(Forecast::new(used, days, left, today, account.end))
    }
}

/// Service units for programs: whole ones as such.
fn units(units: Units) -> Value {
    if units.seconds() % 3600 == 0 { json!(units.whole_hours()) } else { json!(units.hours()) }
}

fn limit(limit: Limit<Units>) -> Value {
    limit.at().map_or(Value::Null, units)
}

impl View {
    /// The clusters on which the bank holds it.
    pub fn held(&self) -> impl Iterator<Item = &str> {
        self.holding().map(|hold| hold.cluster.as_str())
    }

    /// Holds that hold it now: a limit that Slurm has all the time does so only when it is used up.
    fn holding(&self) -> impl Iterator<Item = &Hold> {
        let is_over = |cluster: &String| match &self.standing {
            Some(standing) => standing.over.contains(cluster),
            None => self.account.told.over,
        };
        self.holds
            .iter()
            .filter(move |hold| hold.mechanism != Mechanism::Billing || is_over(&hold.cluster))
    }

    /// Slurm's figure less the ledger's; `None` if not every cluster said it.
    #[must_use]
    pub fn drift(&self) -> Option<Units> {
        let standing = self.standing.as_ref().filter(|standing| standing.complete)?;
        standing.used.minus(self.account.totals().charged)
    }

    /// All of it.
    #[must_use]
    pub fn json(&self) -> Value {
        let account = &self.account;
        let (totals, told) = (account.totals(), account.told);
        let parts = account.allocation().clusters;
        let standing = self.standing.as_ref();
        let complete = standing.filter(|standing| standing.complete);
        let used = self.used.as_ref().map(|used| {
            let one = |(cluster, used): (&String, &Option<Units>)| {
                (cluster.clone(), used.map_or(Value::Null, units))
            };
            used.iter().map(one).collect::<serde_json::Map<_, _>>()
        });
        let holds: Vec<Value> = self
            .holding()
            .map(|hold| {
                json!({
                    "cluster": hold.cluster,
                    "setting": hold.mechanism.setting(Some(hold.value)),
                    "before": hold.mechanism.setting(hold.previous),
                    "stage": hold.stage.word(),
                    "since": hold.since.get(),
                })
            })
            .collect();
        json!({
            "account": account.name,
            "su_limit_hrs": limit(account.limit()),
            "unlimited": account.unlimited,
            "clusters": parts.iter().map(|(name, own)| (name.clone(), units(*own)))
                .collect::<serde_json::Map<_, _>>(),
            "start": account.start.to_string(),
            "end": account.end.to_string(),
            "used": complete.map(|standing| units(standing.used)),
            "used_by_cluster": used,
            "left": standing.and_then(Standing::left).map(units),
            "percent": standing.and_then(Standing::share).map(|share| share * 100.0),
            "level": standing.and_then(|standing| standing.level).map(|level| level.word()),
            "lower_limit_informed": told.lower,
            "upper_limit_informed": told.upper,
            "max_limit_informed": told.over,
            "end_informed": told.end,
            "ledger": {
                "granted": units(totals.granted),
                "charged": units(totals.charged),
                "balance": units(totals.balance()),
                "drift": self.drift().map(units),
            },
            "used_below": self.below.iter().map(|(name, used)| (name.clone(), units(*used)))
                .collect::<serde_json::Map<_, _>>(),
            "held": holds,
            "forecast": self.forecast.map(|forecast| json!({
                "units_per_day": forecast.per_day,
                "exhausted": forecast.exhausted.map(|day| day.to_string()),
                "before_end": forecast.before_end,
                "left_at_end": forecast.left_at_end,
            })),
        })
    }
}
