//! Units that come and go: insert, modify, change, add, withdraw, refund, transfer, date, get_sus.

use steward_common::bank::{Account, Change as Plan, Day, Kind, Refused, Units, amount};
use steward_common::id::ClusterName;
use steward_common::limit::Limit;

use super::{Outcome, complain, left_out, lines, outcome};
use crate::bank::Bank;
use crate::bank::ledger::Changed;
use crate::command::BadInput;
use crate::output::plain::visible;

/// An account and an amount.
#[derive(Debug, clap::Args)]
struct Whose {
    /// Slurm's name of the account.
    #[arg(value_name = "ACCOUNT")]
    account: String,
    /// Service units, a whole number.
    #[arg(value_name = "SUS", allow_hyphen_values = true)]
    units: String,
    /// Only for this cluster; used before what is for all of them.
    #[arg(long, short = 'M', value_name = "NAME")]
    cluster: Option<ClusterName>,
}

impl Whose {
    fn cluster(&self) -> Option<&str> {
        self.cluster.as_ref().map(ClusterName::as_str)
    }

    fn limit(&self, bank: &Bank) -> anyhow::Result<Limit<Units>> {
        Ok(amount::limit(&self.units, bank.config.bank.default_allocation)?)
    }

    fn amount(&self) -> anyhow::Result<Units> {
        Ok(amount::amount(&self.units)?)
    }

    /// Units of a cluster that does not have the account nobody could use.
    async fn is_there(&self, bank: &Bank) -> anyhow::Result<()> {
        let Some(own) = self.cluster() else { return Ok(()) };
        bank.store.account_named(&self.account).await?;
        if bank.clusters_of(&self.account).await?.iter().any(|one| one == own) {
            return Ok(());
        }
        Err(BadInput(self.unknown()).into())
    }

    fn unknown(&self) -> String {
        let name = &self.account;
        let place = self.cluster().map_or_else(String::new, |cluster| format!(" on {cluster}"));
        format!("Slurm knows no account {name}{place}; 'sacctmgr add account {name}' makes it")
    }

    /// Changes it and says what it has then.
    async fn change(
        &self,
        bank: &Bank,
        what: &str,
        plan: impl FnOnce(&Account) -> Result<Plan, Refused>,
    ) -> anyhow::Result<Outcome> {
        if bank.dry {
            let account = bank.store.account_named(&self.account).await?;
            let change = plan(&account)?;
            let of = |line: &steward_common::bank::Line| {
                format!("would enter {} of {} SUs\n", line.kind, line.amount)
            };
            let report = bank.foresee(&account, &change).await?;
            let mut text = change.lines.iter().map(of).collect::<String>();
            if change.unlimited == Some(true) {
                text += "would have no limit\n";
            }
            text += &lines(&report, true);
            return Ok(outcome(text, &report.troubles));
        }
        let changed = bank.change(&self.account, what, plan).await?;
        Ok(told(bank, changed))
    }
}

/// `Account X has N SUs`, as programs read it.
fn has(account: &Account) -> String {
    let limit = account.limit().at().map_or_else(|| "-1".to_owned(), |units| units.to_string());
    format!("Account {} has {limit} SUs\n", visible(&account.name))
}

/// What it has, and what became of holds.
fn told(bank: &Bank, changed: Changed) -> Outcome {
    let mut text = has(&changed.account);
    match changed.checked {
        None => Outcome::done(text),
        Some(Ok(report)) => {
            text += &lines(&report, bank.dry);
            if complain(&report.troubles) { Outcome::in_part(text) } else { Outcome::done(text) }
        }
        Some(Err(error)) => {
            complain(&[format!("the ledger is changed, but the account stays held: {error:#}")]);
            Outcome::in_part(text)
        }
    }
}

/// Put an account into the bank: its proposal begins today.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
-1 is no limit. The account must be one of Slurm's.

Examples:
  steward bank insert physics 10000
  steward bank insert students -1
  steward bank insert chemistry 5000 --cluster gpu")]
pub struct Insert {
    #[command(flatten)]
    whose: Whose,
}

impl Insert {
    pub async fn run(self, bank: &Bank) -> anyhow::Result<Outcome> {
        let limit = self.whose.limit(bank)?;
        let name = &self.whose.account;
        let there = bank.store.accounts().await?;
        if there.contains_key(name) {
            return Err(Refused::Exists(name.clone()).into());
        }
        if !bank.looks_at(name) {
            return Err(BadInput(left_out(name)).into());
        }
        let clusters = bank.clusters_of(name).await?;
        let wanted = self.whose.cluster();
        if clusters.is_empty() || wanted.is_some_and(|own| !clusters.iter().any(|one| one == own)) {
            return Err(BadInput(self.whose.unknown()).into());
        }
        if bank.dry {
            return Ok(Outcome::done(format!("would put account {} in\n", visible(name))));
        }
        if limit.is_unlimited() {
            tracing::warn!("-1 was given: the account has no limit");
        }
        let account = bank.insert(name, wanted, limit).await?;
        Ok(Outcome::done(has(&account)))
    }
}

/// Set another limit: its proposal begins anew today. Slurm's usage stays.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
-1 is no limit. `change` keeps the dates; `renewal` also sets usage to nothing.

Examples:
  steward bank modify physics 20000
  steward bank modify students -1")]
pub struct Modify {
    #[command(flatten)]
    whose: Whose,
}

impl Modify {
    pub async fn run(self, bank: &Bank) -> anyhow::Result<Outcome> {
        let limit = self.whose.limit(bank)?;
        self.whose.is_there(bank).await?;
        let (today, days) = (bank.today(), bank.config.bank.proposal_days);
        let cluster = self.whose.cluster();
        let plan = |account: &Account| account.modify(cluster, limit, today, days);
        self.whose.change(bank, "modify", plan).await
    }
}

/// Set another limit: the dates of its proposal stay.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  steward bank change physics 20000")]
pub struct Change {
    #[command(flatten)]
    whose: Whose,
}

impl Change {
    pub async fn run(self, bank: &Bank) -> anyhow::Result<Outcome> {
        let limit = amount::bound(&self.whose.units, bank.config.bank.default_allocation)?;
        self.whose.is_there(bank).await?;
        let cluster = self.whose.cluster();
        let plan = |account: &Account| account.set(cluster, limit);
        self.whose.change(bank, "change", plan).await
    }
}

/// Add units. A hold that the bank made is released if they are enough.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  steward bank add physics 500 --reason 'ticket 4711'")]
pub struct Add {
    #[command(flatten)]
    whose: Whose,
}

impl Add {
    pub async fn run(self, bank: &Bank) -> anyhow::Result<Outcome> {
        let (units, cluster) = (self.whose.amount()?, self.whose.cluster());
        self.whose.is_there(bank).await?;
        let plan = |account: &Account| account.give(cluster, units, Kind::Grant, None);
        self.whose.change(bank, "add", plan).await
    }
}

/// Take units away, used or not.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  steward bank withdraw physics 500")]
pub struct Withdraw {
    #[command(flatten)]
    whose: Whose,
}

impl Withdraw {
    pub async fn run(self, bank: &Bank) -> anyhow::Result<Outcome> {
        let (units, cluster) = (self.whose.amount()?, self.whose.cluster());
        let plan = |account: &Account| account.withdraw(cluster, units);
        self.whose.change(bank, "withdraw", plan).await
    }
}

/// Give units back, as for jobs that a broken node has lost.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  steward bank refund physics 12 --reason 'node n17 failed'")]
pub struct Refund {
    #[command(flatten)]
    whose: Whose,
}

impl Refund {
    pub async fn run(self, bank: &Bank) -> anyhow::Result<Outcome> {
        let (units, cluster) = (self.whose.amount()?, self.whose.cluster());
        self.whose.is_there(bank).await?;
        let plan = |account: &Account| account.give(cluster, units, Kind::Refund, None);
        self.whose.change(bank, "refund", plan).await
    }
}

/// Move units that nobody has used from one account to another.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  steward bank transfer physics chemistry 500")]
pub struct Transfer {
    /// Who gives.
    #[arg(value_name = "FROM")]
    from: String,
    /// Who gets.
    #[arg(value_name = "TO")]
    to: String,
    /// Service units, a whole number.
    #[arg(value_name = "SUS", allow_hyphen_values = true)]
    units: String,
}

impl Transfer {
    pub async fn run(self, bank: &Bank) -> anyhow::Result<Outcome> {
        let units = amount::amount(&self.units)?;
        if bank.dry {
            let (from, to) = (&self.from, &self.to);
            let giver = bank.store.account_named(from).await?;
            let taker = bank.store.account_named(to).await?;
            let (_, change) = giver.transfer(&taker, units, &bank.used_by(from).await?)?;
            let report = bank.foresee(&taker, &change).await?;
            let text = format!("would move {units} SUs\n") + &lines(&report, true);
            return Ok(outcome(text, &report.troubles));
        }
        let (giver, changed) = bank.transfer(&self.from, &self.to, units).await?;
        let rest = told(bank, changed);
        Ok(Outcome { text: has(&giver) + &rest.text, end: rest.end })
    }
}

/// Move the first day of a proposal; its last day follows.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  steward bank date physics 2026-10-01
  steward bank date physics 2026-10-01 --end 2026-12-31")]
pub struct Date {
    /// Slurm's name of the account.
    #[arg(value_name = "ACCOUNT")]
    account: String,
    /// The first day, YYYY-MM-DD; not in the future.
    #[arg(value_name = "DATE", allow_hyphen_values = true)]
    start: String,
    /// The last day [default: bank.proposal_days later].
    #[arg(long, value_name = "DATE")]
    end: Option<String>,
}

impl Date {
    pub async fn run(self, bank: &Bank) -> anyhow::Result<Outcome> {
        let start: Day = self.start.parse()?;
        let end = self.end.as_deref().map(str::parse::<Day>).transpose()?;
        if bank.dry {
            bank.store.account_named(&self.account).await?;
            let (start, end) = bank.days(start, end)?;
            return Ok(Outcome::done(format!("would begin on {start} and end on {end}\n")));
        }
        let Account { start, end, .. } = bank.date(&self.account, start, end).await?;
        let name = visible(&self.account);
        Ok(Outcome::done(format!("Account {name}: the proposal is from {start} to {end}\n")))
    }
}

/// Print what an account may use: `Account test1 has 10000 SUs`; -1 is no limit.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  steward bank get_sus physics")]
pub struct GetSus {
    /// Slurm's name of the account.
    #[arg(value_name = "ACCOUNT")]
    account: String,
}

impl GetSus {
    pub async fn run(self, bank: &Bank) -> anyhow::Result<Outcome> {
        Ok(Outcome::done(has(&bank.store.account_named(&self.account).await?)))
    }
}
