//! What the bank asks Slurm, and tells it.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Context;
use steward_common::bank::Units;
use steward_common::cluster::share::{self, Share};
use steward_common::id::ClusterName;

use crate::collect::site;
use crate::config::Config;
use crate::shutdown::Shutdown;
use crate::source::slurm::associations::{self, Association};
use crate::source::slurm::coordinators::{self, Coordinators};
use crate::source::slurm::sacct::Stop;
use crate::source::slurm::settings::{Settings, text};

/// Slurm's commands, for the bank.
#[derive(Clone)]
pub struct Slurm {
    config: Arc<Config>,
    stop: Stop,
}

impl std::fmt::Debug for Slurm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Slurm")
    }
}

/// A command of sacctmgr that changes something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// The account.
    pub account: String,
    /// The cluster.
    pub cluster: String,
    /// What to set.
    pub setting: String,
}

impl Order {
    /// An order.
    #[must_use]
    pub fn new(account: &str, cluster: &str, setting: impl Into<String>) -> Order {
        Order { account: account.to_owned(), cluster: cluster.to_owned(), setting: setting.into() }
    }

    fn arguments(&self) -> Vec<String> {
        let words = ["-i", "modify", "account", "where"].map(str::to_owned);
        let place = [format!("account={}", self.account), format!("cluster={}", self.cluster)];
        let set = ["set".to_owned(), self.setting.clone()];
        words.into_iter().chain(place).chain(set).collect()
    }
}

/// What a person would type.
impl std::fmt::Display for Order {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "sacctmgr {}", self.arguments().join(" "))
    }
}

/// A cluster: its name, and whether Slurm must be told it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its name.
    pub name: String,
    named: bool,
}

impl Slurm {
    /// Asks as the settings say, until `shutdown`.
    #[must_use]
    pub fn new(config: Arc<Config>, shutdown: &Shutdown) -> Slurm {
        let shutdown = shutdown.clone();
        Slurm { config, stop: Arc::new(move || shutdown.is_due()) }
    }

    async fn ask(&self, argv: Vec<String>, arguments: Vec<String>) -> Result<String, String> {
        let (stop, limit) = (self.stop.clone(), self.config.slurm.timeout.0);
        let work = tokio::task::spawn_blocking(move || {
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            text(&argv, &arguments, limit, &stop).map_err(|error| error.to_string())
        });
        work.await.map_err(|error| error.to_string())?
    }

    /// The clusters on which units are used.
    ///
    /// # Errors
    /// If the local one does not say its name.
    pub async fn clusters(&self) -> anyhow::Result<Vec<Place>> {
        let config = &self.config;
        let own = if config.bank.clusters.is_empty() {
            &config.slurm.clusters
        } else {
            &config.bank.clusters
        };
        if !own.is_empty() {
            let named = |name: &ClusterName| Place { name: name.to_string(), named: true };
            return Ok(own.iter().map(named).collect());
        }
        let (argv, stop) = (config.slurm.scontrol.clone(), self.stop.clone());
        let limit = config.slurm.timeout.0;
        let work = move || site::local_within(&argv, limit, &stop);
        let local = tokio::task::spawn_blocking(work).await?;
        let local = local.context(
            "slurmctld does not say which cluster this is; does it run? bank.clusters may name it",
        )?;
        Ok(vec![Place { name: local.to_string(), named: false }])
    }

    fn of(place: &Place, words: &[&str]) -> Vec<String> {
        let cluster = place.named.then(|| ["-M".to_owned(), place.name.clone()]);
        let words = words.iter().map(ToString::to_string);
        cluster.into_iter().flatten().chain(words).collect()
    }

    /// What accounts and users used on a cluster, as slurmctld counts it.
    ///
    /// # Errors
    /// If slurmctld does not say it.
    pub async fn shares(&self, place: &Place) -> Result<Vec<Share>, String> {
        let words = Self::of(place, &["-a", "-P", "-o", share::COLUMNS]);
        let told = self.ask(self.config.slurm.sshare.clone(), words).await?;
        let shares = share::parse(&told).map_err(|error| error.to_string())?;
        if shares.is_empty() {
            return Err("sshare told nothing: is PriorityType=priority/multifactor?".to_owned());
        }
        Ok(shares)
    }

    /// All accounts of these clusters with their limits. slurmdbd is asked: it answers for clusters that do not.
    ///
    /// # Errors
    /// If slurmdbd does not answer.
    pub async fn associations(&self, places: &[Place]) -> Result<Vec<Association>, String> {
        let names: Vec<&str> = places.iter().map(|place| place.name.as_str()).collect();
        let clusters = format!("cluster={}", names.join(","));
        let format = format!("format={}", associations::COLUMNS);
        let words = ["-n", "-P", "show", "assoc", &clusters, &format].map(str::to_owned);
        let told = self.ask(self.config.slurm.sacctmgr.clone(), words.to_vec()).await?;
        associations::parse(&told).map_err(|error| error.to_string())
    }

    /// Who looks after accounts.
    ///
    /// # Errors
    /// If slurmdbd does not answer.
    pub async fn coordinators(&self) -> Result<Coordinators, String> {
        let words = coordinators::QUESTION.map(str::to_owned).to_vec();
        let told = self.ask(self.config.slurm.sacctmgr.clone(), words).await?;
        Ok(coordinators::parse(&told))
    }

    /// The settings of a cluster.
    ///
    /// # Errors
    /// If slurmctld does not say them.
    pub async fn settings(&self, place: &Place) -> Result<Settings, String> {
        let words = Self::of(place, &["show", "config"]);
        let told = self.ask(self.config.slurm.scontrol.clone(), words).await?;
        Ok(Settings::parse(&told))
    }

    /// Tells Slurm.
    ///
    /// # Errors
    /// If sacctmgr did not do it.
    pub async fn tell(&self, order: &Order) -> Result<(), String> {
        let told = self.ask(self.config.slurm.sacctmgr.clone(), order.arguments()).await;
        told.map(drop).map_err(|why| {
            // Of RawUsage sacctmgr says nothing at all when it is denied.
            let is_silent = why.trim_end().ends_with(':');
            let is_denied = is_silent || why.to_lowercase().contains("permission");
            let hint = if is_denied {
                " (it takes AdminLevel=Administrator, as the slurm user has: `sacctmgr modify user \
                 NAME set adminlevel=Administrator`)"
            } else {
                ""
            };
            why + hint
        })
    }

    /// How runs of a job are and were billed.
    ///
    /// # Errors
    /// If slurmdbd does not answer.
    pub async fn runs(&self, place: &Place, job: u32) -> Result<String, String> {
        let format = "JobIDRaw,Account,State,ElapsedRaw,AllocTRES";
        let job = job.to_string();
        let words = Self::of(place, &["-n", "-P", "-X", "-j", &job, "-o", format]);
        self.ask(self.config.slurm.sacct.clone(), words).await
    }
}

/// Usage of accounts; a user's is part of his account's.
#[must_use]
pub fn of_accounts(shares: &[Share]) -> BTreeMap<String, Units> {
    let accounts = shares.iter().filter(|share| share.user.is_none());
    accounts.filter_map(|share| Some((share.account.to_string(), units(share)?))).collect()
}

/// What belongs to an account: its own row and users, then those of the accounts below it, whose usage Slurm counts for it,
/// too. sshare lists a tree: what is below a row follows it, deeper.
#[must_use]
pub fn of_tree<'s>(shares: &'s [Share], account: &str) -> Vec<&'s Share> {
    let is_own = |share: &Share| *share.account == *account;
    let Some(top) = shares.iter().position(|share| share.user.is_none() && is_own(share)) else {
        return shares.iter().filter(|share| is_own(share)).collect();
    };
    let rows = shares.iter().skip(top);
    let depth = shares.get(top).map_or(0, |share| share.depth);
    let below = rows.enumerate().take_while(|(place, share)| *place == 0 || share.depth > depth);
    let (mut own, others): (Vec<_>, Vec<_>) =
        below.map(|(_, share)| share).partition(|share| is_own(share));
    own.extend(others);
    own
}

/// What was used; `None` if Slurm does not say.
#[must_use]
pub fn units(share: &Share) -> Option<Units> {
    let used = share.raw_usage.filter(|used| (0.0..9e18).contains(used))?;
    #[allow(clippy::cast_possible_truncation, reason = "whole, and in the range")]
    Some(Units::new(used.round() as i64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_below_an_account_belongs_to_it() {
        let text = "root|||1|1|90|0|0|1|1\n\
                    \u{20}root|root||1|1|0|0|0|1|1\n\
                    \u{20}a|||1|1|30|0|0|1|1\n\
                    \u{20} b|||1|1|20|0|0|1|1\n\
                    \u{20}  b|ann||1|1|20|0|0|1|1\n\
                    \u{20} a|bob||1|1|10|0|0|1|1\n\
                    \u{20}c|||1|1|60|0|0|1|1\n\
                    \u{20} c|ann||1|1|60|0|0|1|1\n";
        let shares = share::parse(text).unwrap();
        let seen = |account: &str| -> Vec<String> {
            let rows = of_tree(&shares, account);
            rows.iter()
                .map(|one| format!("{} {}", one.account, one.user.as_deref().unwrap_or("-")))
                .collect()
        };
        assert_eq!(seen("a"), ["a -", "a bob", "b -", "b ann"]);
        assert_eq!(seen("c"), ["c -", "c ann"]);
        assert_eq!(seen("root").len(), 8);
        assert!(seen("x").is_empty());
    }
}
