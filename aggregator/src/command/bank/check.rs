//! Checks, and what they lead to: check, check_service_units_limit, check_end_of_date_limit, three_month_check,
//! release_hold, reset_usage, renewal.

use steward_common::bank::{Account, Day, Units, amount};
use steward_common::limit::Limit;

use super::{Outcome, changes, complain, lines, outcome};
use crate::bank::Bank;
use crate::bank::check::{Checked, Report};
use crate::bank::hold::Done;
use crate::bank::ledger::Anew;
use crate::command::BadInput;
use crate::output::number::counted;
use crate::output::plain::visible;

/// Check accounts: levels, holds and releases, ends of proposals; with --all also charges and statements.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The same as the service does by itself with bank.enabled. An account that used more than it may is
held; a hold of the bank that is not needed any more is released. A cluster that does not answer
counts as neither: nothing is released because of it, and the exit code is 3.

Examples:
  steward bank check --all --dry-run
  steward bank check --all")]
pub struct Check {
    /// All accounts that bank.include and bank.exclude name.
    #[arg(long, required_unless_present = "account")]
    all: bool,
    /// Only these.
    #[arg(value_name = "ACCOUNT", conflicts_with = "all")]
    account: Vec<String>,
}

impl Check {
    pub async fn run(self, bank: &Bank) -> anyhow::Result<Outcome> {
        let mut text = String::new();
        let mut troubles = Vec::new();
        let names: Vec<&str> = self.account.iter().map(String::as_str).collect();
        for name in &names {
            looked_at(bank, name).await?;
        }
        let whole = bank.whole_check((!self.all).then_some(&names)).await?;
        text += &ends(&whole.ended, bank.dry);
        text += &limits(&whole.report, bank.dry);
        text += &soon(&whole.soon, bank.today());
        text += &unbanked(&whole.report.unbanked);
        troubles.extend(whole.report.troubles);
        troubles.extend(whole.troubles);
        text += &effects(bank).await?;
        Ok(outcome(text, &troubles))
    }
}

/// Complains of an account that is not in the bank, or that the settings leave out.
async fn looked_at(bank: &Bank, name: &str) -> anyhow::Result<()> {
    bank.store.account_named(name).await?;
    if bank.looks_at(name) { Ok(()) } else { Err(BadInput(super::left_out(name)).into()) }
}

/// What happened to holds, and where each account stands.
fn limits(report: &Report, dry: bool) -> String {
    lines(report, dry) + &report.accounts.iter().map(line).collect::<String>()
}

/// What becomes of jobs; only for a bank that changes nothing.
async fn effects(bank: &Bank) -> anyhow::Result<String> {
    if !bank.dry {
        return Ok(String::new());
    }
    Ok(bank.effects().await?.iter().map(|line| format!("{line}\n")).collect())
}

fn ends(ended: &[Account], dry: bool) -> String {
    let would = if dry { "would expire" } else { "have expired" };
    let line = |account: &Account| {
        format!("Account {}: the proposal has ended; its SUs {would}\n", visible(&account.name))
    };
    ended.iter().map(line).collect()
}

fn soon(accounts: &[Account], today: Day) -> String {
    let line = |account: &Account| {
        let (name, end) = (visible(&account.name), account.end);
        let ends = if end < today { "ended" } else { "ends" };
        format!("Account {name}: the proposal {ends} on {end}\n")
    };
    accounts.iter().map(line).collect()
}

fn unbanked(names: &[String]) -> String {
    if names.is_empty() {
        return String::new();
    }
    let some: Vec<String> = names.iter().take(5).map(|name| visible(name).to_string()).collect();
    let more = if names.len() > some.len() { ", …" } else { "" };
    let count = counted(names.len() as u64, "account");
    format!("Not in the bank: {count} ({}{more})\n", some.join(", "))
}

/// Where an account stands, in a line.
fn line(checked: &Checked) -> String {
    let standing = &checked.standing;
    let name = visible(&checked.account.name);
    let is_gone = checked.done.iter().all(|(_, done)| *done == Done::Gone);
    let used = if is_gone {
        "not an account of Slurm".to_owned()
    } else if standing.complete {
        format!("{} SUs used", standing.used)
    } else {
        format!("at least {} SUs used (a cluster does not say)", standing.used)
    };
    let limit = match (standing.limit, standing.share()) {
        (Limit::Unlimited, _) => ", no limit".to_owned(),
        (Limit::At(limit), _) if is_gone => format!(", limit {limit}"),
        (Limit::At(limit), None) => format!(" of {limit}"),
        (Limit::At(limit), Some(share)) => format!(" of {limit} ({:.2} %)", share * 100.0),
    };
    let news: Vec<&str> = checked.news.iter().map(|notice| notice.word()).collect();
    let news =
        if news.is_empty() { String::new() } else { format!(", reached: {}", news.join(", ")) };
    let held = if checked.held.is_empty() {
        String::new()
    } else {
        format!(", held on {}", checked.held.join(", "))
    };
    format!("Account {name}: {used}{limit}{news}{held}\n")
}

/// Check one account: has it reached a level, is it to be held?
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  steward bank check_service_units_limit physics --dry-run")]
pub struct CheckLimit {
    /// Slurm's name of the account.
    #[arg(value_name = "ACCOUNT")]
    account: String,
}

impl CheckLimit {
    pub async fn run(self, bank: &Bank) -> anyhow::Result<Outcome> {
        looked_at(bank, &self.account).await?;
        let report = bank.check(Some(&[&self.account])).await?;
        let text = limits(&report, bank.dry) + &effects(bank).await?;
        Ok(outcome(text, &report.troubles))
    }
}

/// End a proposal whose last day is over: its units expire, and usage begins anew.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Nothing happens unless bank.enforce_end_date is set. An account without limit keeps that.

Example:
  steward bank check_end_of_date_limit physics")]
pub struct CheckEnd {
    /// Slurm's name of the account.
    #[arg(value_name = "ACCOUNT")]
    account: String,
}

impl CheckEnd {
    pub async fn run(self, bank: &Bank) -> anyhow::Result<Outcome> {
        let account = bank.store.account_named(&self.account).await?;
        let (name, end) = (visible(&account.name), account.end);
        if bank.today() <= end {
            return Ok(Outcome::done(format!("Account {name}: the proposal lasts until {end}\n")));
        }
        if !bank.config.bank.enforce_end_date {
            return Ok(Outcome::done(format!(
                "Account {name}: the proposal ended on {end}; that is not enforced \
                 (bank.enforce_end_date)\n"
            )));
        }
        let anew = bank.expire(&account.name).await?;
        let text = ends(std::slice::from_ref(&account), bank.dry);
        Ok(began_anew(&anew, text, bank))
    }
}

/// Say whether a proposal ends within bank.notice_days; that is told once in each.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  steward bank three_month_check physics")]
pub struct CheckSoon {
    /// Slurm's name of the account.
    #[arg(value_name = "ACCOUNT")]
    account: String,
}

impl CheckSoon {
    pub async fn run(self, bank: &Bank) -> anyhow::Result<Outcome> {
        let account = bank.store.account_named(&self.account).await?;
        let mut troubles = Vec::new();
        let (name, end) = (visible(&account.name), account.end);
        let news = bank.check_ends(vec![account.clone()], &mut troubles).await?;
        let text = if news.is_empty() && troubles.is_empty() {
            format!("Account {name}: the last day is {end}; there is nothing to tell now\n")
        } else {
            soon(&news, bank.today())
        };
        Ok(outcome(text, &troubles))
    }
}

/// Release a hold that the bank made. What Slurm had before comes back.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
It is refused while the account has used more than it may, or a cluster does not say what was used.
With --force it is done all the same; the next check holds the account again, unless it gets more
units or bank.exclude names it.

Examples:
  steward bank release_hold physics --dry-run
  steward bank release_hold physics
  steward bank release_hold physics --force     for a while, or to leave the bank")]
pub struct ReleaseHold {
    /// Slurm's name of the account.
    #[arg(value_name = "ACCOUNT")]
    account: String,
    /// Also while it has used more than it may.
    #[arg(long)]
    force: bool,
}

impl ReleaseHold {
    pub async fn run(self, bank: &Bank) -> anyhow::Result<Outcome> {
        let account = bank.store.account_named(&self.account).await?;
        let name = visible(&account.name);
        let holds = bank.store.holds().await?;
        if !holds.values().any(|hold| hold.account == account.name) {
            return Ok(Outcome::failed(format!(
                "Account {name} has no hold that the bank made; nothing was changed\n"
            )));
        }
        if self.force {
            let (done, troubles) = bank.release(&account.name).await?;
            return Ok(outcome(changes(&account.name, &done, bank.dry), &troubles));
        }
        let report = bank.check(Some(&[&account.name])).await?;
        let mut text = lines(&report, bank.dry);
        let released = |checked: &Checked| {
            checked.done.iter().any(|(_, done)| matches!(done, Done::Released(_) | Done::Gone))
        };
        if report.accounts.iter().any(released) {
            return Ok(outcome(text, &report.troubles));
        }
        complain(&report.troubles);
        text += &report.accounts.iter().map(line).collect::<String>();
        text += &format!(
            "Account {name} stays held: it has used what it may, or a cluster does not say what was \
             used, or Slurm has the limit itself (bank.hold); `steward bank add` gives it more, and \
             --force releases it until the next check\n"
        );
        Ok(Outcome::failed(text))
    }
}

/// Set usage to nothing in Slurm: the proposal begins today with the same limit.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  steward bank reset_usage physics --dry-run")]
pub struct ResetUsage {
    /// Slurm's name of the account.
    #[arg(value_name = "ACCOUNT")]
    account: String,
}

impl ResetUsage {
    pub async fn run(self, bank: &Bank) -> anyhow::Result<Outcome> {
        let (today, days) = (bank.today(), bank.config.bank.proposal_days);
        let plan = |account: &Account| account.reset(today, days).map(Some);
        let anew = bank.begin_anew(&self.account, "reset_usage", plan).await?;
        Ok(began_anew(&anew, String::new(), bank))
    }
}

/// Begin a new proposal today: what was left expires, usage begins anew, a hold is released.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  steward bank renewal physics            the same limit again
  steward bank renewal physics 20000")]
pub struct Renewal {
    /// Slurm's name of the account.
    #[arg(value_name = "ACCOUNT")]
    account: String,
    /// Service units for all clusters [default: as before].
    #[arg(value_name = "SUS", allow_hyphen_values = true)]
    units: Option<String>,
}

impl Renewal {
    pub async fn run(self, bank: &Bank) -> anyhow::Result<Outcome> {
        let least = bank.config.bank.default_allocation;
        let wanted: Option<Limit<Units>> =
            self.units.as_deref().map(|text| amount::bound(text, least)).transpose()?;
        let (today, days) = (bank.today(), bank.config.bank.proposal_days);
        let plan = |account: &Account| {
            let limit = wanted.unwrap_or(account.allocation().floating);
            account.renew(limit, today, days).map(Some)
        };
        let anew = bank.begin_anew(&self.account, "renewal", plan).await?;
        Ok(began_anew(&anew, String::new(), bank))
    }
}

fn began_anew(anew: &Anew, mut text: String, bank: &Bank) -> Outcome {
    let Account { name, start, end, .. } = &anew.account;
    if bank.dry {
        let order = |order: &crate::bank::slurm::Order| format!("would tell Slurm: {order}\n");
        text += &format!("Account {}: a proposal would begin on {}\n", visible(name), bank.today());
        text += &anew.orders.iter().map(order).collect::<String>();
        text += &lines(&anew.report, true);
        return outcome(text, &anew.report.troubles);
    }
    text += &lines(&anew.report, false);
    text += &format!("Account {}: the proposal is from {start} to {end}\n", visible(name));
    outcome(text, &anew.report.troubles)
}
