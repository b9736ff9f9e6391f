//! The bank as a file: dump_json, dump_csv, repopulate_json, import.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::Context;

use super::{Outcome, outcome};
use crate::bank::Bank;
use crate::bank::import::{Wanted, csv, json, parse, read_sqlite};
use crate::command::{BadInput, ask};

/// Writes a file that must not be there.
fn create(path: &Path, text: &str) -> anyhow::Result<()> {
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let mut file = file.with_context(|| format!("{} (nothing is overwritten)", path.display()))?;
    file.write_all(text.as_bytes())?;
    Ok(file.sync_all()?)
}

fn written(bank: &Bank, path: &Path, text: &str) -> anyhow::Result<Outcome> {
    if bank.dry {
        return Ok(Outcome::done(format!("would write {}\n", path.display())));
    }
    create(path, text)?;
    Ok(Outcome::done(String::new()))
}

/// Write all accounts as JSON, in the form of slurm_su_bank. A file that is there is not overwritten.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  steward bank dump_json /var/lib/steward/bank.json")]
pub struct DumpJson {
    /// A new file.
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

impl DumpJson {
    pub async fn run(self, bank: &Bank) -> anyhow::Result<Outcome> {
        written(bank, &self.file, &json(&bank.store.accounts().await?)?)
    }
}

/// Write all accounts as comma-separated values. A file that is there is not overwritten.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  steward bank dump_csv /var/lib/steward/bank.csv")]
pub struct DumpCsv {
    /// A new file.
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

impl DumpCsv {
    pub async fn run(self, bank: &Bank) -> anyhow::Result<Outcome> {
        written(bank, &self.file, &csv(&bank.store.accounts().await?))
    }
}

/// Make accounts as a dump has them, by entries of the difference. First all is written to bank.backup.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Accounts that the dump lacks stay as they are. A file that is not whole changes nothing, and neither
does anything without a backup.

Example:
  steward bank repopulate_json /var/lib/steward/bank.json --yes")]
pub struct Repopulate {
    /// A dump.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Do not ask.
    #[arg(long, short)]
    yes: bool,
}

impl Repopulate {
    pub async fn run(self, bank: &Bank) -> anyhow::Result<Outcome> {
        let wanted = dump(&self.file, bank)?;
        let Some(backup) = &bank.config.bank.backup else {
            let why = "bank.backup is not set: without a backup nothing is changed";
            return Err(BadInput(why.to_owned()).into());
        };
        if bank.dry {
            return Ok(Outcome::done(format!("would set {} accounts\n", wanted.len())));
        }
        let question =
            format!("Set {} accounts as {} has them?", wanted.len(), self.file.display());
        if !self.yes && !ask::confirm(&question, "--yes")? {
            return Ok(Outcome::failed("nothing was changed\n"));
        }
        let text = json(&bank.store.accounts().await?)?;
        keep(backup, &text)
            .with_context(|| format!("{}: no backup, so nothing was changed", backup.display()))?;
        let (made, changed) = bank.repopulate(&wanted, "repopulate_json").await?;
        Ok(Outcome::done(format!(
            "{made} accounts are new, {changed} are set as the file has them; the backup is {}\n",
            backup.display()
        )))
    }
}

/// Writes a backup, whole or not at all; the one before it stays beside it.
fn keep(path: &Path, text: &str) -> anyhow::Result<()> {
    let dir = path.parent().context("has no directory")?;
    let mut file = tempfile::NamedTempFile::new_in(dir)?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    if path.exists() {
        let mut older = path.as_os_str().to_owned();
        older.push(".1");
        std::fs::rename(path, PathBuf::from(older))?;
    }
    file.persist(path)?;
    Ok(())
}

fn dump(path: &Path, bank: &Bank) -> anyhow::Result<Vec<Wanted>> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| BadInput(format!("{}: {error}", path.display())))?;
    let days = bank.config.bank.proposal_days;
    let bad = |error| BadInput(format!("{}: {error}", path.display()));
    Ok(parse(&text, days).map_err(bad)?)
}

/// Take over the accounts of slurm_su_bank: its SQLite file or a JSON dump.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Accounts that are in the bank already are refused. Holds of slurm_su_bank that Slurm still has count
as holds of the bank, so that adding units releases them. The file is not changed.

Examples:
  steward bank import /opt/slurm_bank/bank.db
  steward bank import dump.json")]
pub struct Import {
    /// The file.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The table in a SQLite file.
    #[arg(long, value_name = "NAME", default_value = "sbank")]
    table: String,
}

impl Import {
    pub async fn run(self, bank: &Bank) -> anyhow::Result<Outcome> {
        let head = std::fs::read(&self.file)
            .map_err(|error| BadInput(format!("{}: {error}", self.file.display())))?;
        let wanted = if head.starts_with(b"SQLite format 3") {
            let days = bank.config.bank.proposal_days;
            let read = read_sqlite(&self.file, &self.table, days).await;
            read.map_err(|error| BadInput(format!("{}: {error:#}", self.file.display())))?
        } else {
            dump(&self.file, bank)?
        };
        let there = bank.store.accounts().await?;
        if let Some(twice) = wanted.iter().find(|one| there.contains_key(&one.name)) {
            let why = format!("account {} is in the bank already; nothing was changed", twice.name);
            return Ok(Outcome::failed(why + "\n"));
        }
        if bank.dry {
            return Ok(Outcome::done(format!("would take over {} accounts\n", wanted.len())));
        }
        let (made, _) = bank.repopulate(&wanted, "import").await?;
        let mut troubles = Vec::new();
        let held = match bank.adopt(&wanted).await {
            Ok(held) => held,
            Err(error) => {
                troubles.push(format!("holds were not taken over: {error:#}"));
                0
            }
        };
        let text = format!("{made} accounts were taken over, {held} holds among them\n");
        Ok(outcome(text, &troubles))
    }
}
