//! What is known of accounts: info, list, usage, history, forecast, tree, rate, statement.

use clap::ValueEnum;
use serde_json::{Value, json};
use steward_common::bank::{Day, Units};
use steward_common::slurm::tres;

use super::{Outcome, complain, outcome};
use crate::bank::Bank;
use crate::bank::import::raw;
use crate::bank::slurm::{Place, of_tree, units};
use crate::bank::view::View;
use crate::command::{BadInput, End};
use crate::output::bank::{self as sheets, User};
use crate::output::format::{self, Format};
use crate::output::screen::Screen;
use crate::output::sheet::Document;

/// How it is shown.
#[derive(Debug, clap::Args)]
struct How {
    /// How to write it.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// The same as --format json.
    #[arg(long, conflicts_with = "format")]
    json: bool,
}

impl How {
    fn is_json(&self) -> bool {
        self.json || self.format == Format::Json
    }

    fn write(&self, document: &Document) -> String {
        let format = if self.is_json() { Format::Json } else { self.format };
        format::write(document, format, Screen::of_stdout(), Some(0))
    }
}

/// Show what an account may use, what it used, what is left, and until when it lasts.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Both figures are shown: what slurmctld counts, which decides, and what the ledger has from the
archive. They differ by what ran today, by jobs that the archive does not have yet, and by what was
used before the proposal began.

Examples:
  steward bank info physics
  steward bank info physics --json")]
pub struct Info {
    /// Slurm's name of the account.
    #[arg(value_name = "ACCOUNT")]
    account: String,
    #[command(flatten)]
    how: How,
}

/// Show on which day nothing will be left, if jobs go on as in the last 30 days.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
What was used in a day is taken from the ledger's charges; without any, from what slurmctld counts
since the proposal began.

Example:
  steward bank forecast physics")]
pub struct Forecast {
    #[command(flatten)]
    of: Info,
}

impl Forecast {
    pub async fn run(self, bank: &Bank) -> anyhow::Result<Outcome> {
        let json = |view: &View| {
            let all = view.json();
            let some = ["account", "used", "left", "start", "end", "forecast"];
            some.into_iter().map(|key| (key, all.get(key).cloned())).collect()
        };
        self.of.shown(bank, sheets::forecast, json).await
    }
}

impl Info {
    pub async fn run(self, bank: &Bank) -> anyhow::Result<Outcome> {
        self.shown(bank, sheets::info, View::json).await
    }

    async fn shown(
        self,
        bank: &Bank,
        document: fn(&View) -> Document,
        json: impl Fn(&View) -> Value,
    ) -> anyhow::Result<Outcome> {
        bank.store.account_named(&self.account).await?;
        let (now, mut troubles) = match bank.ask().await {
            Ok(now) => {
                let troubles: Vec<String> = now.troubles().collect();
                (Some(now), troubles)
            }
            Err(error) => (None, vec![format!("Slurm does not say what was used: {error:#}")]),
        };
        let views = bank.views(Some(&self.account), now.as_ref()).await?;
        let mut text = String::new();
        for view in &views {
            text += &if self.how.is_json() {
                serde_json::to_string_pretty(&json(view))? + "\n"
            } else {
                self.how.write(&document(view))
            };
        }
        troubles.dedup();
        Ok(outcome(text, &troubles))
    }
}

/// How a list is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum ListFormat {
    /// A table that fits the terminal.
    #[default]
    Table,
    /// One JSON object.
    Json,
    /// Comma-separated values.
    Csv,
    /// Markdown.
    Markdown,
    /// One page.
    Html,
    /// The columns of slurm_su_bank with | between them.
    Raw,
}

/// List all accounts of the bank.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Slurm is not asked: `steward bank info` does that.

Examples:
  steward bank list
  steward bank list --format raw     id|account|su_limit_hrs|date|upper|lower|max")]
pub struct List {
    /// How to write it.
    #[arg(long, value_enum, default_value_t)]
    format: ListFormat,
    /// The same as --format json.
    #[arg(long, conflicts_with = "format")]
    json: bool,
}

impl List {
    pub async fn run(self, bank: &Bank) -> anyhow::Result<Outcome> {
        let format = match self.format {
            ListFormat::Raw => {
                return Ok(Outcome::done(raw(&bank.store.accounts().await?)));
            }
            _ if self.json => Format::Json,
            ListFormat::Table => Format::Table,
            ListFormat::Json => Format::Json,
            ListFormat::Csv => Format::Csv,
            ListFormat::Markdown => Format::Markdown,
            ListFormat::Html => Format::Html,
        };
        let views = bank.views(None, None).await?;
        let document = sheets::list(&views);
        let text = format::write(&document, format, Screen::of_stdout(), Some(0));
        Ok(Outcome::done(text))
    }
}

/// Show what each user of an account used, by cluster, as slurmctld counts it.
///
/// Slurm counts what accounts below an account use for it, too: they are listed with their users.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  steward bank usage physics")]
pub struct Usage {
    /// Slurm's name of the account.
    #[arg(value_name = "ACCOUNT")]
    account: String,
    #[command(flatten)]
    how: How,
}

impl Usage {
    pub async fn run(self, bank: &Bank) -> anyhow::Result<Outcome> {
        let account = bank.store.account_named(&self.account).await?;
        let (mut users, mut troubles) = (Vec::new(), Vec::new());
        for place in bank.slurm.clusters().await? {
            let shares = match bank.slurm.shares(&place).await {
                Ok(shares) => shares,
                Err(why) => {
                    troubles.push(format!("{} does not say what was used: {why}", place.name));
                    continue;
                }
            };
            for share in of_tree(&shares, &account.name) {
                users.push(User {
                    cluster: place.name.clone(),
                    account: share.account.to_string(),
                    user: share.user.as_deref().map(str::to_owned),
                    used: units(share),
                });
            }
        }
        if users.is_empty() {
            complain(&troubles);
            anyhow::bail!("nobody says what account {} used", account.name);
        }
        let document = sheets::usage(&account, &users);
        Ok(outcome(self.how.write(&document), &troubles))
    }
}

/// Show every entry of an account, with who made it and why, and what Slurm was told.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  steward bank history physics --json")]
pub struct History {
    /// Slurm's name of the account.
    #[arg(value_name = "ACCOUNT")]
    account: String,
    #[command(flatten)]
    how: How,
}

impl History {
    pub async fn run(self, bank: &Bank) -> anyhow::Result<Outcome> {
        let account = bank.store.account_named(&self.account).await?;
        let entries = bank.store.entries(&account.name).await?;
        let actions = bank.store.actions(&account.name).await?;
        let document = sheets::history(&account, &entries, &actions, &bank.config.zone());
        Ok(Outcome::done(self.how.write(&document)))
    }
}

/// Show Slurm's tree of accounts with usage, limits and holds.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  steward bank tree")]
pub struct Tree {
    #[command(flatten)]
    how: How,
}

impl Tree {
    pub async fn run(self, bank: &Bank) -> anyhow::Result<Outcome> {
        let now = bank.ask().await?;
        let (accounts, holds) = (bank.store.accounts().await?, bank.store.holds().await?);
        // Who reads it with a program takes the parent from its column.
        let is_text = !self.how.is_json() && self.how.format != Format::Csv;
        let document = sheets::tree(&now, &accounts, &holds, is_text);
        let troubles: Vec<String> = now.troubles().collect();
        Ok(outcome(self.how.write(&document), &troubles))
    }
}

/// Show what an hour of a job costs, and what it has cost so far.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  steward bank rate 4711")]
pub struct Rate {
    /// Slurm's number of a job that runs or has ended.
    #[arg(value_name = "JOBID", value_parser = clap::value_parser!(u32).range(1..))]
    job: u32,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

/// What a job costs.
struct Cost {
    account: String,
    state: String,
    seconds: i64,
    weight: Option<u64>,
}

/// Of a row of sacct: number, account, state, seconds, what was allocated.
fn cost(line: &str) -> Option<Cost> {
    let columns: Vec<&str> = line.split('|').collect();
    let [_, account, state, seconds, given] = columns.try_into().ok()?;
    Some(Cost {
        account: account.to_owned(),
        state: state.to_owned(),
        seconds: seconds.parse().ok()?,
        weight: tres::amount(given, "billing").ok().flatten(),
    })
}

impl Rate {
    pub async fn run(self, bank: &Bank) -> anyhow::Result<Outcome> {
        let mut found = Vec::new();
        for place in bank.slurm.clusters().await? {
            found.extend(self.of(bank, &place).await?);
        }
        if found.is_empty() {
            let why = format!("job {} is not known to Slurm's database", self.job);
            return Err(BadInput(why).into());
        }
        let mut text = String::new();
        let mut all = Vec::new();
        for (place, cost) in found {
            let weight = cost.weight.and_then(|weight| i64::try_from(weight).ok());
            let so_far = weight.and_then(|weight| weight.checked_mul(cost.seconds));
            let Some((rate, so_far)) = cost.weight.zip(so_far.map(Units::new)) else {
                text += &format!(
                    "Job {} on {place}: {}, not started, or Slurm bills nothing for it\n",
                    self.job, cost.state
                );
                continue;
            };
            text += &format!(
                "Job {} on {place}, account {}: {rate} SUs an hour, {so_far} SUs so far ({})\n",
                self.job, cost.account, cost.state
            );
            all.push(json!({
                "cluster": place, "job_id": self.job, "account": cost.account,
                "state": cost.state, "units_per_hour": rate, "units": so_far.hours(),
            }));
        }
        let all = serde_json::to_string_pretty(&json!({ "jobs": all }))? + "\n";
        Ok(Outcome::done(if self.json { all } else { text }))
    }

    async fn of(&self, bank: &Bank, place: &Place) -> anyhow::Result<Vec<(String, Cost)>> {
        let told = bank.slurm.runs(place, self.job).await.map_err(|why| anyhow::anyhow!(why))?;
        let rows = told.lines().filter_map(cost);
        Ok(rows.map(|cost| (place.name.clone(), cost)).collect())
    }
}

/// A monthly statement: what was there, what came, what went, what is left.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  steward bank statement                       last month, all accounts
  steward bank statement --month 2026-10 --format csv")]
pub struct Statement {
    /// Which month, YYYY-MM [default: the last one].
    #[arg(long, value_name = "MONTH")]
    month: Option<String>,
    /// Only this account.
    #[arg(value_name = "ACCOUNT")]
    account: Option<String>,
    #[command(flatten)]
    how: How,
}

impl Statement {
    pub async fn run(self, bank: &Bank) -> anyhow::Result<Outcome> {
        let (from, to) = self.days(bank.today())?;
        if let Some(name) = &self.account {
            bank.store.account_named(name).await?;
        }
        let mut lines = Vec::new();
        for (name, account) in bank.store.accounts().await? {
            if self.account.as_ref().is_some_and(|own| *own != name) {
                continue;
            }
            let entries = bank.store.entries(&name).await?;
            let month = sheets::Month::new(&name, &entries, from, to, |at| bank.day_at(at));
            lines.push(month.unlimited(account.unlimited));
        }
        let document = sheets::statement(&lines, from);
        Ok(Outcome { text: self.how.write(&document), end: End::Done })
    }

    /// The first day of the month, and of the next.
    fn days(&self, today: Day) -> anyhow::Result<(Day, Day)> {
        let first = |text: &str| format!("{text}-01").parse::<Day>();
        let month = sheets::month_of;
        let from = match &self.month {
            Some(text) => first(text).map_err(|_| {
                BadInput(format!("--month: expected a month such as 2026-10, found {text:?}"))
            })?,
            None => {
                let this = first(&month(today))?;
                let last = this.plus(-1).unwrap_or(this);
                first(&month(last))?
            }
        };
        if from > today {
            return Err(BadInput(format!("--month: {} is still to come", month(from))).into());
        }
        let next = from.plus(32).map(month).unwrap_or_default();
        Ok((from, first(&next)?))
    }
}
