//! A check of accounts: what was used, which levels that reaches, who is held and who is released.

use std::collections::{BTreeMap, BTreeSet};

use steward_common::bank::hold::Value;
use steward_common::bank::standing::Usage;
use steward_common::bank::{Account, Allocation, Level, Mechanism, Standing, Units};
use steward_common::limit::Limit;

use super::hold::{Done, Wanted, decide};
use super::slurm::{Order, Place, of_accounts};
use super::tell::Voice;
use super::{Bank, Notice};
use crate::source::slurm::associations::Association;
use crate::store::StoreError;
use crate::store::holds::{Hold, Reset};
use crate::store::ledger::Accounts;

/// What Slurm says now.
#[derive(Debug, Default)]
pub struct Now {
    /// The clusters.
    pub places: Vec<Place>,
    /// What accounts used, by cluster; an error where slurmctld did not say it.
    pub used: BTreeMap<String, Result<BTreeMap<String, Units>, String>>,
    /// Accounts with their limits, by cluster and name.
    pub associations: BTreeMap<(String, String), Association>,
}

impl Now {
    /// What an account used on each cluster on which it is; not known where only slurmctld has it, and slurmdbd not. A
    /// cluster of which neither says anything may have it, too.
    #[must_use]
    pub fn usage(&self, account: &str) -> Usage {
        let mut usage = Usage::new();
        for (cluster, used) in &self.used {
            let is_silent = used.is_err() && !self.is_listed(cluster);
            let used = used.as_ref().ok().and_then(|used| used.get(account).copied());
            let is_listed = self.lists(cluster, account);
            if is_listed || is_silent || used.is_some() {
                usage.insert(cluster.clone(), used.filter(|_| is_listed));
            }
        }
        usage
    }

    /// What the accounts right below an account used, on all clusters that say it: each with what is below it in turn.
    #[must_use]
    pub fn below(&self, account: &str) -> BTreeMap<String, Units> {
        let mut below: BTreeMap<String, Units> = BTreeMap::new();
        for one in self.associations.values().filter(|one| one.parent == account) {
            let used = self.used.get(&one.cluster).and_then(|used| used.as_ref().ok());
            if let Some(used) = used.and_then(|used| used.get(&one.account)) {
                let sum = below.entry(one.account.clone()).or_default();
                *sum = [*sum, *used].into_iter().sum();
            }
        }
        below.retain(|_, used| *used != Units::ZERO);
        below
    }

    fn lists(&self, cluster: &str, account: &str) -> bool {
        self.associations.contains_key(&(cluster.to_owned(), account.to_owned()))
    }

    /// Whether slurmdbd knows accounts of the cluster.
    fn is_listed(&self, cluster: &str) -> bool {
        self.associations.keys().any(|(place, _)| place == cluster)
    }

    /// Whether Slurm has no such account there for certain: slurmdbd lists others of the cluster and slurmctld answers,
    /// and neither of them has it.
    fn lacks(&self, cluster: &str, account: &str) -> bool {
        let counts = self.used.get(cluster).and_then(|used| used.as_ref().ok());
        self.is_listed(cluster)
            && !self.lists(cluster, account)
            && counts.is_some_and(|counts| !counts.contains_key(account))
    }

    /// Names of all accounts.
    #[must_use]
    pub fn accounts(&self) -> BTreeSet<&str> {
        self.associations.keys().map(|(_, account)| account.as_str()).collect()
    }

    /// What went wrong, a line each.
    pub fn troubles(&self) -> impl Iterator<Item = String> {
        self.used.iter().filter_map(|(cluster, used)| {
            let why = used.as_ref().err()?;
            Some(format!(
                "{cluster} does not say what was used: {why}; nothing is released because of that"
            ))
        })
    }
}

/// What came of one account.
#[derive(Clone, Debug)]
pub struct Checked {
    /// The account, as it was before.
    pub account: Account,
    /// Where it stands.
    pub standing: Standing,
    /// Levels that were reached for the first time in this period.
    pub news: Vec<Notice>,
    /// What was done on each cluster.
    pub done: Vec<(String, Done)>,
    /// The clusters on which the bank holds it now.
    pub held: Vec<String>,
}

/// What came of a check.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The accounts.
    pub accounts: Vec<Checked>,
    /// Usage that was set to nothing, which an earlier run meant to do.
    pub settled: Vec<Order>,
    /// Accounts of Slurm that are not in the bank.
    pub unbanked: Vec<String>,
    /// What went wrong.
    pub troubles: Vec<String>,
}

impl Bank {
    /// Asks Slurm.
    ///
    /// # Errors
    /// If slurmdbd does not say which accounts there are, or it is not known which cluster this is.
    pub async fn ask(&self) -> anyhow::Result<Now> {
        let places = self.slurm.clusters().await?;
        let mut now = Now::default();
        for place in &places {
            let shares = self.slurm.shares(place).await;
            now.used.insert(place.name.clone(), shares.map(|shares| of_accounts(&shares)));
        }
        let found = self.slurm.associations(&places).await.map_err(|why| anyhow::anyhow!(why))?;
        let key = |one: &Association| (one.cluster.clone(), one.account.clone());
        now.associations = found.into_iter().map(|one| (key(&one), one)).collect();
        now.places = places;
        Ok(now)
    }

    /// Checks these accounts; all that are looked at if there is no list.
    ///
    /// # Errors
    /// If Slurm's accounts or the store cannot be read. What fails of one account stops no other.
    pub async fn check(&self, only: Option<&[&str]>) -> anyhow::Result<Report> {
        let mut now = self.ask().await?;
        let mut report = Report::default();
        self.settle(&mut now, only, &mut report).await?;
        report.troubles.extend(now.troubles());
        // After Slurm was asked: whoever held an account in between wrote that down before.
        let holds = self.store.holds().await?;
        let accounts: Accounts = self.store.accounts().await?;
        let voice = self.voice(&mut report.troubles).await;
        for (name, account) in &accounts {
            let wanted = match only {
                Some(only) => only.contains(&name.as_str()),
                None => self.looks_at(name),
            };
            if wanted {
                let mut checked =
                    self.check_one(account, &now, &holds, &mut report.troubles).await?;
                self.tell(&voice, &now, &mut checked, &mut report.troubles).await?;
                report.accounts.push(checked);
            }
        }
        self.deliver(&voice, &mut report.troubles).await;
        if only.is_none() {
            let unbanked = now.accounts().into_iter().filter(|name| !accounts.contains_key(*name));
            let unbanked = unbanked.filter(|name| self.looks_at(name));
            report.unbanked = unbanked.map(str::to_owned).collect();
        }
        Ok(report)
    }

    /// Sets usage to nothing where an earlier run meant to and did not come to it.
    async fn settle(
        &self,
        now: &mut Now,
        only: Option<&[&str]>,
        report: &mut Report,
    ) -> Result<(), StoreError> {
        for reset in self.store.resets().await? {
            if only.is_some_and(|only| !only.contains(&reset.account.as_str())) {
                continue;
            }
            if let Err(why) = self.settle_one(now, &reset, report).await? {
                report.troubles.push(format!(
                    "the usage of {} on {} is still to be set to nothing: {why}",
                    reset.account, reset.cluster
                ));
                // What slurmctld says is not what counts.
                if let Some(Ok(used)) = now.used.get_mut(&reset.cluster) {
                    used.remove(&reset.account);
                }
            }
        }
        Ok(())
    }

    async fn settle_one(
        &self,
        now: &mut Now,
        reset: &Reset,
        report: &mut Report,
    ) -> Result<Result<(), String>, StoreError> {
        let is_gone = now.lacks(&reset.cluster, &reset.account);
        let Some(used) = now.used.get_mut(&reset.cluster) else {
            return Ok(Err("the cluster is not in bank.clusters any more".to_owned()));
        };
        let used = match used {
            Ok(used) => used,
            Err(why) => return Ok(Err(why.clone())),
        };
        let found = used.get(&reset.account).copied();
        if found.is_none() && !is_gone {
            return Ok(Err("slurmctld does not say what it used".to_owned()));
        }
        // It was done, and the one who did it did not come to write that down.
        let is_done = found.is_none_or(|found| found < reset.used || found == Units::ZERO);
        if !is_done {
            let order = Order::new(&reset.account, &reset.cluster, "RawUsage=0");
            if !self.dry
                && let Err(why) = self.told(&order).await?
            {
                return Ok(Err(why));
            }
            used.insert(reset.account.clone(), Units::ZERO);
            report.settled.push(order);
        }
        if !self.dry {
            self.store.drop_reset(&reset.account, &reset.cluster).await?;
        }
        Ok(Ok(()))
    }

    pub(super) async fn check_one(
        &self,
        account: &Account,
        now: &Now,
        holds: &BTreeMap<(String, String), Hold>,
        troubles: &mut Vec<String>,
    ) -> Result<Checked, StoreError> {
        let (allocation, usage) = (account.allocation(), now.usage(&account.name));
        let standing = Standing::new(&allocation, &usage, &self.config.bank.levels());
        let mut checked = Checked {
            account: account.clone(),
            standing: standing.clone(),
            news: Vec::new(),
            done: Vec::new(),
            held: Vec::new(),
        };
        for (cluster, _) in usage.iter().filter(|(_, used)| used.is_none()) {
            // Of a cluster that does not answer at all it is said once, not for each account.
            if now.used.get(cluster).is_some_and(Result::is_ok) {
                let why = if now.lists(cluster, &account.name) {
                    "sshare does not say what it used"
                } else {
                    "sshare has it and sacctmgr does not list it"
                };
                let name = &account.name;
                troubles.push(format!("{name} on {cluster}: {why}; nothing is held or released"));
            }
        }
        let own = holds.keys().filter(|(name, _)| *name == account.name);
        let clusters: BTreeSet<&String> =
            usage.keys().chain(own.map(|(_, cluster)| cluster)).collect();
        for cluster in clusters {
            let key = (account.name.clone(), cluster.clone());
            let place = (cluster.clone(), account.name.clone());
            let own = holds.get(&key);
            let wanted = self.wanted(cluster, &allocation, &usage, &standing, own);
            let done = match now.associations.get(&place) {
                Some(one) => {
                    let limit = |mechanism| one.limit(mechanism);
                    self.carry_out(decide(&account.name, cluster, wanted, own, limit)).await?
                }
                None if now.lacks(cluster, &account.name) => {
                    // Its limits went with it.
                    if !self.dry {
                        self.store.drop_hold(&account.name, cluster).await?;
                    }
                    Done::Gone
                }
                None if own.is_none() => Done::Nothing,
                None if now.used.contains_key(cluster) => Done::Kept,
                None => {
                    let why = "is held there, but the cluster is not in bank.clusters any more";
                    troubles.push(format!("{} {why}: {cluster}", account.name));
                    Done::Kept
                }
            };
            let stays = match &done {
                Done::Nothing => own.is_some(),
                Done::Held(_) | Done::Kept => true,
                Done::Released(_) | Done::Gone | Done::Foreign => false,
                Done::Failed(order, why) => {
                    troubles.push(format!("{order}: {why}; the next check tries it again"));
                    own.is_some()
                }
            };
            // A limit that Slurm has all the time holds nobody before it is used up.
            let is_limit = match own {
                Some(own) => own.mechanism == Mechanism::Billing,
                None => self.config.bank.hold == Mechanism::Billing,
            };
            if stays && (!is_limit || standing.over.contains(cluster)) {
                checked.held.push(cluster.clone());
            }
            checked.done.push((cluster.clone(), done));
        }
        let released =
            checked.done.iter().any(|(_, done)| matches!(done, Done::Released(_) | Done::Gone));
        if released && !self.dry && standing.level != Some(Level::Over) {
            self.store.forget_over(&account.name).await?;
        }
        Ok(checked)
    }

    /// Tells of a level that was reached for the first time in this period. That an account is held is told when it is.
    async fn tell(
        &self,
        voice: &Voice,
        now: &Now,
        checked: &mut Checked,
        troubles: &mut Vec<String>,
    ) -> Result<(), StoreError> {
        let Checked { account, standing, done, .. } = &*checked;
        let failed = done.iter().any(|(_, done)| matches!(done, Done::Failed(..)));
        let Some(level) = standing.level.filter(|level| !account.told.of(*level)) else {
            return Ok(());
        };
        if level == Level::Over && failed {
            return Ok(());
        }
        let is_news = if self.dry {
            true
        } else {
            let views = self.views(Some(&account.name), Some(now)).await?;
            let Some(view) = views.first() else { return Ok(()) };
            self.tell_level(voice, level, view, &now.places, troubles).await?
        };
        if is_news {
            checked.news.push(Notice::Level(level));
        }
        Ok(())
    }

    /// What is wanted of an account on a cluster.
    fn wanted(
        &self,
        cluster: &str,
        allocation: &Allocation,
        usage: &Usage,
        standing: &Standing,
        own: Option<&Hold>,
    ) -> Wanted {
        let mechanism = self.config.bank.hold;
        let wanted = |value: Value| Wanted { mechanism, value, may_release: standing.complete };
        let is_over = standing.over.iter().any(|name| name == cluster);
        if let Some(own) = own
            && is_over
            && own.mechanism != mechanism
        {
            // The settings name another way now; what holds goes on to hold, so that there is no gap.
            let Hold { mechanism, value, .. } = *own;
            return Wanted { mechanism, value: Some(value), may_release: standing.complete };
        }
        if mechanism != Mechanism::Billing {
            return wanted(is_over.then_some(0));
        }
        let Limit::At(most) = may_use(cluster, allocation, usage) else { return wanted(None) };
        match own {
            // Others may have used more than they say.
            Some(own) if !standing.complete && own.mechanism == mechanism => {
                wanted(Some(own.value.min(mechanism.held(most))))
            }
            _ => wanted(Some(mechanism.held(most))),
        }
    }
}

/// What may be used on a cluster in all: its own part, and what the others leave of the floating one.
fn may_use(cluster: &str, allocation: &Allocation, usage: &Usage) -> Limit<Units> {
    let own = |name: &str| allocation.clusters.get(name).copied().unwrap_or(Units::ZERO);
    let others = usage.iter().filter(|(name, _)| *name != cluster);
    let taken: Units = others
        .filter_map(|(name, used)| Some((*used)?.minus(own(name))?.or_nothing()))
        .map(Units::negated)
        .sum();
    allocation.floating.map(|floating| [floating, own(cluster), taken].into_iter().sum())
}

impl Checked {
    /// Whether it was held for the first time in this period.
    #[must_use]
    pub fn is_newly_over(&self) -> bool {
        self.news.contains(&Notice::Level(Level::Over))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::slurm::associations;

    #[test]
    fn what_accounts_below_used_is_known_by_name() {
        let text = "c1|a||root|||\nc1|b||a|||\nc1|d||b|||\nc1|e||a|||\nc2|b||a|||\nc3|b||a|||\n";
        let all = associations::parse(text).unwrap();
        let key = |one: &Association| (one.cluster.clone(), one.account.clone());
        let associations = all.into_iter().map(|one| (key(&one), one)).collect();
        let used = |seconds: i64| Ok([("b".to_owned(), Units::new(seconds))].into());
        let silent = Err("no answer".to_owned());
        let used = [("c1", used(30)), ("c2", used(12)), ("c3", silent)];
        let used = used.map(|(cluster, used)| (cluster.to_owned(), used)).into();
        let now = Now { places: Vec::new(), used, associations };
        // One that used nothing is left out, and so is what is below those below.
        assert_eq!(now.below("a"), [("b".to_owned(), Units::new(42))].into());
        assert!(now.below("b").is_empty());
    }

    #[test]
    fn a_cluster_of_which_nobody_says_anything_is_not_one_without_use() {
        let of = |text: &str| associations::parse(text).unwrap().into_iter();
        let key = |one: &Association| (one.cluster.clone(), one.account.clone());
        let associations: BTreeMap<_, _> =
            of("c1|a||root|||\nc2|b||root|||\n").map(|one| (key(&one), one)).collect();
        let used = [("c1", Ok([("a".to_owned(), Units::new(30))].into()))];
        let silent = ["c2", "c3"].map(|cluster| (cluster, Err("no answer".to_owned())));
        let all = used.into_iter().chain(silent);
        let used = all.map(|(cluster, used)| (cluster.to_owned(), used)).collect();
        let now = Now { places: Vec::new(), used, associations };
        // slurmdbd says that the second has no account a; of the third it says nothing.
        let expected = [("c1".to_owned(), Some(Units::new(30))), ("c3".to_owned(), None)];
        assert_eq!(now.usage("a"), expected.into());
    }
}
