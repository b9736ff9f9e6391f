//! `steward bank`, a group of commands a file.

mod check;
mod dump;
mod grant;
mod show;

use std::sync::Arc;

use clap::Subcommand;
use steward_common::bank::{AmountError, Refused};
use steward_common::slurm::ParseError;

use super::{BadInput, Outcome};
use crate::actor::actor;
use crate::bank::Bank;
use crate::bank::check::Report;
use crate::bank::hold::Done;
use crate::config::Config;
use crate::shutdown::Shutdown;
use crate::store::ledger::LedgerError;
use crate::store::{Store, StoreError};

/// How often a store that others write to is opened again; each waits for seconds.
const TRIES: u32 = 5;

/// Service units of accounts: give them, see what is left, hold accounts that used too much.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A service unit (SU) is one billing hour. What an account may use is the sum of its entries in the
ledger; what it has used is what slurmctld counts (sshare). Names may be written with dashes too.

Rights in Slurm: whatever changes accounts there (check, check_service_units_limit,
check_end_of_date_limit, release_hold, reset_usage, renewal, and add, modify, change, refund or
transfer for an account that the bank holds) needs AdminLevel=Administrator, as the slurm user has;
root is not needed. All others only read. The ledger is the service's store ([store]).

Exit codes: 0 done, 1 refused or failed, 2 bad input, 3 done in part.

Examples:
  steward bank insert physics 10000             an account gets 10000 SUs for a year
  steward bank add physics 500 --reason 'ticket 4711'
  steward bank get_sus physics                  Account physics has 10500 SUs
  steward bank info physics                     what it used, what is left, and until when
  steward bank check --all --dry-run            what a check would tell Slurm
  steward bank check --all                      for cron: levels, holds and releases, ends
  steward bank release_hold physics
  steward bank forecast physics                 the day on which nothing will be left
  steward bank history physics                  who gave and took what, and what Slurm was told")]
pub struct Args {
    /// Why; the ledger keeps it.
    #[arg(long, global = true, value_name = "TEXT")]
    reason: Option<String>,
    /// Show what would be done, with the exact commands of Slurm, and do nothing.
    #[arg(long, global = true)]
    dry_run: bool,
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
#[allow(missing_docs, reason = "the help of a command stands on its Args")]
enum What {
    Insert(grant::Insert),
    Modify(grant::Modify),
    Change(grant::Change),
    Add(grant::Add),
    Withdraw(grant::Withdraw),
    Refund(grant::Refund),
    Transfer(grant::Transfer),
    Date(grant::Date),
    #[command(name = "get_sus", alias = "get-sus")]
    GetSus(grant::GetSus),
    Check(check::Check),
    #[command(name = "check_service_units_limit", alias = "check-service-units-limit")]
    CheckLimit(check::CheckLimit),
    #[command(name = "check_end_of_date_limit", alias = "check-end-of-date-limit")]
    CheckEnd(check::CheckEnd),
    #[command(name = "three_month_check", alias = "three-month-check")]
    CheckSoon(check::CheckSoon),
    #[command(name = "release_hold", alias = "release-hold")]
    ReleaseHold(check::ReleaseHold),
    #[command(name = "reset_usage", alias = "reset-usage")]
    ResetUsage(check::ResetUsage),
    Renewal(check::Renewal),
    Info(show::Info),
    List(show::List),
    Usage(show::Usage),
    History(show::History),
    Forecast(show::Forecast),
    Tree(show::Tree),
    Rate(show::Rate),
    Statement(show::Statement),
    #[command(name = "dump_json", alias = "dump-json")]
    DumpJson(dump::DumpJson),
    #[command(name = "dump_csv", alias = "dump-csv")]
    DumpCsv(dump::DumpCsv),
    #[command(name = "repopulate_json", alias = "repopulate-json")]
    Repopulate(dump::Repopulate),
    Import(dump::Import),
}

/// Does it.
///
/// # Errors
/// If it makes no sense, is refused or fails; the message says which.
pub async fn run(args: Args, config: Config, shutdown: Shutdown) -> anyhow::Result<Outcome> {
    let store = shutdown.or(open(&config)).await??;
    let mut bank = Bank::open(Arc::new(config), store.clone(), actor(), &shutdown).await;
    (bank.reason, bank.dry) = (args.reason, args.dry_run);
    let done = act(args.what, &bank).await.map_err(sorted);
    store.close().await;
    done
}

/// Opens the store; while many others open it, too, it may have to be tried again.
async fn open(config: &Config) -> Result<Store, StoreError> {
    for _ in 0..TRIES {
        match Store::at(config.store()).await {
            Err(error) if error.is_locked() => {}
            done => return done,
        }
    }
    Store::at(config.store()).await
}

async fn act(what: What, bank: &Bank) -> anyhow::Result<Outcome> {
    match what {
        What::Insert(args) => args.run(bank).await,
        What::Modify(args) => args.run(bank).await,
        What::Change(args) => args.run(bank).await,
        What::Add(args) => args.run(bank).await,
        What::Withdraw(args) => args.run(bank).await,
        What::Refund(args) => args.run(bank).await,
        What::Transfer(args) => args.run(bank).await,
        What::Date(args) => args.run(bank).await,
        What::GetSus(args) => args.run(bank).await,
        What::Check(args) => args.run(bank).await,
        What::CheckLimit(args) => args.run(bank).await,
        What::CheckEnd(args) => args.run(bank).await,
        What::CheckSoon(args) => args.run(bank).await,
        What::ReleaseHold(args) => args.run(bank).await,
        What::ResetUsage(args) => args.run(bank).await,
        What::Renewal(args) => args.run(bank).await,
        What::Info(args) => args.run(bank).await,
        What::List(args) => args.run(bank).await,
        What::Usage(args) => args.run(bank).await,
        What::History(args) => args.run(bank).await,
        What::Forecast(args) => args.run(bank).await,
        What::Tree(args) => args.run(bank).await,
        What::Rate(args) => args.run(bank).await,
        What::Statement(args) => args.run(bank).await,
        What::DumpJson(args) => args.run(bank).await,
        What::DumpCsv(args) => args.run(bank).await,
        What::Repopulate(args) => args.run(bank).await,
        What::Import(args) => args.run(bank).await,
    }
}

/// What a person gave wrong is bad input, whoever found it.
fn sorted(error: anyhow::Error) -> anyhow::Error {
    let refused = match error.downcast_ref::<LedgerError>() {
        Some(LedgerError::Refused(refused)) => Some(refused),
        _ => error.downcast_ref::<Refused>(),
    };
    let bad = refused.is_some_and(Refused::is_bad_input)
        || error.is::<AmountError>()
        || error.is::<ParseError>();
    if bad { BadInput(error.to_string()).into() } else { error }
}

/// Why an account is not for the bank.
fn left_out(name: &str) -> String {
    format!("bank.include and bank.exclude leave account {name} out; nothing was changed")
}

/// What a check did to holds, a line each; what went wrong goes to the log.
fn lines(report: &Report, dry: bool) -> String {
    let would = if dry { "would be " } else { "" };
    let mut text = String::new();
    for order in &report.settled {
        text += &format!("Account {}: usage {would}set to 0: {order}\n", order.account);
    }
    for checked in &report.accounts {
        let name = &checked.account.name;
        let is_ours = checked.done.iter().any(|(_, done)| matches!(done, Done::Held(_)));
        if checked.is_newly_over() && is_ours && !dry {
            text += &format!("Account {name}: Held\n");
        }
        text += &changes(name, &checked.done, dry);
    }
    text
}

/// What was done to holds of an account, a line for each cluster.
fn changes(name: &str, all: &[(String, Done)], dry: bool) -> String {
    let would = if dry { "would be " } else { "" };
    let mut text = String::new();
    for (cluster, done) in all {
        text += &match done {
            Done::Nothing | Done::Failed(..) => continue,
            Done::Held(order) => {
                // A limit that Slurm has all the time holds nobody before it is used up.
                let is_limit = order.setting.contains("billing=");
                let held = if is_limit { "given its limit" } else { "held" };
                format!("Account {name} {would}{held} on {cluster}: {order}\n")
            }
            Done::Released(Some(order)) => {
                format!("Account {name} {would}released on {cluster}: {order}\n")
            }
            Done::Released(None) => format!(
                "Account {name} released on {cluster}: Slurm has the limit of the hold no more, and \
                 what it has is left as it is\n"
            ),
            Done::Gone => format!(
                "Account {name}: Slurm does not have it on {cluster} any more; the hold went \
                 with it\n"
            ),
            Done::Foreign => format!(
                "Account {name} is held on {cluster} by somebody else; the bank does not \
                 touch that\n"
            ),
            Done::Kept => format!(
                "Account {name} stays held on {cluster} until every cluster says what was \
                 used\n"
            ),
        };
    }
    text
}

/// Whether anything went wrong; it is logged.
fn complain(troubles: &[String]) -> bool {
    for trouble in troubles {
        tracing::error!("{trouble}");
    }
    !troubles.is_empty()
}

/// Done, or in part if anything went wrong.
fn outcome(text: String, troubles: &[String]) -> Outcome {
    if complain(troubles) { Outcome::in_part(text) } else { Outcome::done(text) }
}
