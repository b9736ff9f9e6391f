//! What administrators do with accounts: units come, go and are set, dates change, usage begins anew.

use steward_common::bank::account::{self, period};
use steward_common::bank::standing::Usage;
use steward_common::bank::{Account, Change, Day, Kind, Refused, Units};
use steward_common::limit::Limit;

use super::Bank;
use super::check::Report;
use super::slurm::Order;
use crate::store::holds::Reset;
use crate::store::ledger::{Accounts, LedgerError};

/// What came of a change.
#[derive(Debug)]
pub struct Changed {
    /// The account as it is now.
    pub account: Account,
    /// What happened to holds of it; `None` if there were none.
    pub checked: Option<anyhow::Result<Report>>,
}

/// A change in which usage begins anew.
#[derive(Debug)]
pub struct Anew {
    /// The account as it is now; as it was, in a dry run.
    pub account: Account,
    /// Whether there was anything to change.
    pub changed: bool,
    /// What Slurm is told about usage.
    pub orders: Vec<Order>,
    /// What happened to usage and holds.
    pub report: Report,
}

impl Bank {
    /// Which of Slurm's clusters have the account; none if Slurm does not know it.
    ///
    /// # Errors
    /// If slurmdbd does not answer.
    pub async fn clusters_of(&self, name: &str) -> anyhow::Result<Vec<String>> {
        let places = self.slurm.clusters().await?;
        let all = self.slurm.associations(&places).await.map_err(|why| anyhow::anyhow!(why))?;
        let own = all.into_iter().filter(|one| one.account == name);
        Ok(own.map(|one| one.cluster).collect())
    }

    /// Puts an account into the bank.
    ///
    /// # Errors
    /// If it is there, or that cannot be written.
    pub async fn insert(
        &self,
        name: &str,
        cluster: Option<&str>,
        limit: Limit<Units>,
    ) -> Result<Account, LedgerError> {
        if cluster.is_some() && limit.is_unlimited() {
            return Err(Refused::UnlimitedPart.into());
        }
        let period = period(self.today(), self.config.bank.proposal_days)?;
        let change = account::opening(cluster.map(str::to_owned), limit);
        self.store.open_account(name, period, &change, &self.author("insert")).await?;
        self.store.account_named(name).await
    }

    /// Changes one account.
    ///
    /// # Errors
    /// If it is not in the bank, `plan` refuses, or it cannot be written.
    pub async fn change(
        &self,
        name: &str,
        what: &str,
        plan: impl FnOnce(&Account) -> Result<Change, Refused>,
    ) -> Result<Changed, LedgerError> {
        let plan = |all: &Accounts| one(all, name, plan);
        let all = self.store.change_accounts(&[name], &self.author(what), &[], plan).await?;
        self.changed(all, name).await
    }

    /// Moves units from one account to another.
    ///
    /// # Errors
    /// If one of them is not in the bank, the first has not so many, or a cluster does not say what it used.
    pub async fn transfer(
        &self,
        from: &str,
        to: &str,
        units: Units,
    ) -> anyhow::Result<(Account, Changed)> {
        if from == to {
            return Err(Refused::Same(from.to_owned()).into());
        }
        let used = self.used_by(from).await?;
        let plan = |all: &Accounts| {
            let find = |name: &str| all.get(name).ok_or_else(|| Refused::Unknown(name.to_owned()));
            let (away, there) = find(from)?.transfer(find(to)?, units, &used)?;
            Ok(vec![(from.to_owned(), away), (to.to_owned(), there)])
        };
        let author = self.author("transfer");
        let mut all = self.store.change_accounts(&[from, to], &author, &[], plan).await?;
        let giver = all.remove(from).ok_or_else(|| Refused::Unknown(from.to_owned()))?;
        Ok((giver, self.changed(all, to).await?))
    }

    /// What an account used, by all clusters that have it.
    ///
    /// # Errors
    /// If it is not in the bank, or a cluster does not say it.
    pub async fn used_by(&self, name: &str) -> anyhow::Result<Usage> {
        self.store.account_named(name).await?;
        let used = self.ask().await?.usage(name);
        if let Some((cluster, _)) = used.iter().find(|(_, used)| used.is_none()) {
            anyhow::bail!(
                "{cluster} does not say what {name} used, so what is left of it is not known; \
                 nothing was changed"
            );
        }
        Ok(used)
    }

    /// Units came: a hold of the bank may go.
    async fn changed(&self, mut all: Accounts, name: &str) -> Result<Changed, LedgerError> {
        let account = all.remove(name).ok_or_else(|| Refused::Unknown(name.to_owned()))?;
        let holds = self.store.holds().await?;
        let is_held = holds.keys().any(|(account, _)| account == name);
        let checked = if is_held { Some(self.check(Some(&[name])).await) } else { None };
        Ok(Changed { account, checked })
    }

    /// The first and the last day of a proposal that begins so, and ends as the settings say unless that is named.
    ///
    /// # Errors
    /// If the days make no sense.
    pub fn days(&self, start: Day, end: Option<Day>) -> Result<(Day, Day), Refused> {
        let today = self.today();
        if start > today {
            let why = format!("a proposal cannot begin in the future: {start} is after {today}");
            return Err(Refused::Period(why));
        }
        match end {
            None => period(start, self.config.bank.proposal_days),
            Some(end) if end > start => Ok((start, end)),
            Some(end) => {
                let why = format!("a proposal ends after it begins: {end} is not after {start}");
                Err(Refused::Period(why))
            }
        }
    }

    /// Moves the first day of a proposal; the last one follows, unless it is named.
    ///
    /// # Errors
    /// If the days make no sense, or it cannot be written.
    pub async fn date(
        &self,
        name: &str,
        start: Day,
        end: Option<Day>,
    ) -> Result<Account, LedgerError> {
        let (start, end) = self.days(start, end)?;
        let plan = |account: &Account| {
            let line = account::Line {
                cluster: None,
                kind: Kind::Adjustment,
                amount: Units::ZERO,
                about: Some(format!("{start} to {end}")),
            };
            let told = Some(account::Told { end: false, ..account.told });
            let period = Some((start, end));
            Ok(Change { lines: vec![line], period, told, ..Change::default() })
        };
        Ok(self.change(name, "date", plan).await?.account)
    }

    /// Makes a change in which usage begins anew. That is written down with the change, so that whoever comes after a
    /// crash does it.
    ///
    /// # Errors
    /// If a cluster does not say what was used, or it cannot be written: then nothing is changed.
    pub async fn begin_anew(
        &self,
        name: &str,
        what: &str,
        plan: impl Fn(&Account) -> Result<Option<Change>, Refused>,
    ) -> anyhow::Result<Anew> {
        let before = self.store.account_named(name).await?;
        let Some(change) = plan(&before)? else {
            let report = Report::default();
            return Ok(Anew { account: before, changed: false, orders: Vec::new(), report });
        };
        let now = self.ask().await?;
        let mut resets = Vec::new();
        for (cluster, used) in now.usage(name) {
            let Some(used) = used else {
                anyhow::bail!(
                    "{cluster} does not say what {name} used, so it cannot be set to nothing; \
                     nothing was changed"
                );
            };
            if used > Units::ZERO {
                resets.push(Reset { account: name.to_owned(), cluster, used });
            }
        }
        let order = |one: &Reset| Order::new(&one.account, &one.cluster, "RawUsage=0");
        let orders: Vec<Order> = resets.iter().map(order).collect();
        if self.dry {
            let report = self.foresee(&before, &change).await?;
            return Ok(Anew { account: before, changed: true, orders, report });
        }
        let plan = |all: &Accounts| {
            let account = all.get(name).ok_or_else(|| Refused::Unknown(name.to_owned()))?;
            Ok(plan(account)?.map(|change| (name.to_owned(), change)).into_iter().collect())
        };
        let author = self.author(what);
        self.store.change_accounts(&[name], &author, &resets, plan).await?;
        let report = self.check(Some(&[name])).await?;
        let account = self.store.account_named(name).await?;
        Ok(Anew { account, changed: true, orders, report })
    }
}

fn one(
    all: &Accounts,
    name: &str,
    plan: impl FnOnce(&Account) -> Result<Change, Refused>,
) -> Result<Vec<(String, Change)>, Refused> {
    let account = all.get(name).ok_or_else(|| Refused::Unknown(name.to_owned()))?;
    Ok(vec![(name.to_owned(), plan(account)?)])
}
