//! Service units of accounts: the ledger in the store, held against what Slurm says was used.
//!
//! `slurm.rs` asks and tells Slurm, `check.rs` decides what is to happen, `hold.rs` does it so that a crash at any moment
//! is made good by the next run, `ledger.rs` has what administrators do and `foresee.rs` what that would lead to,
//! `settings.rs` looks at slurm.conf, `tell.rs` and `letter.rs` write to those who look after an account.

pub mod charge;
pub mod check;
pub mod foresee;
pub mod hold;
pub mod import;
pub mod ledger;
pub mod letter;
pub mod settings;
pub mod slurm;
pub mod tell;
pub mod view;
pub mod whole;

use std::sync::Arc;

use jiff::Timestamp as Moment;
use steward_common::bank::{Day, Level};
use steward_common::time::Timestamp;

use crate::config::Config;
use crate::shutdown::Shutdown;
use crate::store::Store;
use crate::store::ledger::Author;
use slurm::Slurm;

/// The bank.
#[derive(Clone, Debug)]
pub struct Bank {
    /// The settings.
    pub config: Arc<Config>,
    /// Where the ledger is.
    pub store: Store,
    /// Whom to ask.
    pub slurm: Slurm,
    /// Who does it, and what he said.
    pub actor: String,
    /// What he said.
    pub reason: Option<String>,
    /// Whether Slurm and the ledger are only told about, and not changed.
    pub dry: bool,
    /// When to stop.
    pub shutdown: Shutdown,
}

impl Bank {
    /// The bank of these settings.
    ///
    /// # Errors
    /// If the store cannot be used.
    pub async fn open(
        config: Arc<Config>,
        store: Store,
        actor: String,
        shutdown: &Shutdown,
    ) -> Bank {
        let slurm = Slurm::new(Arc::clone(&config), shutdown);
        let shutdown = shutdown.clone();
        Bank { config, store, slurm, actor, reason: None, dry: false, shutdown }
    }

    /// Who does it now, and why: as he said, else the name of what is done.
    #[must_use]
    pub fn author(&self, what: &str) -> Author {
        let reason = self.reason.clone().unwrap_or_else(|| what.to_owned());
        Author { actor: self.actor.clone(), reason, at: now() }
    }

    /// Today, on the site's clocks.
    #[must_use]
    pub fn today(&self) -> Day {
        day_of(Moment::now(), &self.config.zone())
    }

    /// The day of a moment, on the site's clocks.
    #[must_use]
    pub fn day_at(&self, seconds: i64) -> Day {
        day_of(Moment::from_second(seconds).unwrap_or_default(), &self.config.zone())
    }

    /// Whether `check --all` looks at an account.
    #[must_use]
    pub fn looks_at(&self, account: &str) -> bool {
        let like = |patterns: &[String]| {
            patterns.iter().any(|pattern| crate::jobs::is_like(account, pattern))
        };
        like(&self.config.bank.include) && !like(&self.config.bank.exclude)
    }
}

/// What somebody is told about an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// A level is reached.
    Level(Level),
    /// The proposal ends soon.
    End,
}

impl Notice {
    /// Its word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Notice::Level(level) => level.word(),
            Notice::End => "end",
        }
    }
}

/// Now.
#[must_use]
pub fn now() -> Timestamp {
    Timestamp::new(Moment::now().as_second())
}

/// The day of a moment, on the clocks of a zone.
#[must_use]
pub fn day_of(moment: Moment, zone: &jiff::tz::TimeZone) -> Day {
    let text = moment.to_zoned(zone.clone()).date().to_string();
    // Only years before 1 have no day here.
    text.parse().unwrap_or(Day::EPOCH)
}

#[cfg(test)]
mod tests;
