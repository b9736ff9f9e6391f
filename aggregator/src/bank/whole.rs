//! Everything that is to be done with accounts regularly, by the service or by cron.

use steward_common::bank::{Account, Units};

use super::Bank;
use super::check::Report;
use super::ledger::Anew;

/// What a check of all accounts found.
#[derive(Debug, Default)]
pub struct Whole {
    /// Limits and holds.
    pub report: Report,
    /// Accounts whose proposal has ended, and whose units expired.
    pub ended: Vec<Account>,
    /// Accounts whose proposal ends soon, which was told now.
    pub soon: Vec<Account>,
    /// What else went wrong.
    pub troubles: Vec<String>,
}

impl Bank {
    /// Ends a proposal.
    ///
    /// # Errors
    /// As [`Bank::begin_anew`].
    pub async fn expire(&self, name: &str) -> anyhow::Result<Anew> {
        let settings = &self.config.bank;
        let least = Units::of_hours(settings.default_allocation).unwrap_or(Units::ZERO);
        let (today, days) = (self.today(), settings.proposal_days);
        let plan = |account: &Account| account.expire(least, today, days);
        self.begin_anew(name, "check_end_of_date_limit", plan).await
    }

    /// Notes that proposals end soon; of which accounts that is news.
    ///
    /// # Errors
    /// If Slurm's accounts or the store cannot be read.
    pub async fn check_ends(
        &self,
        accounts: Vec<Account>,
        troubles: &mut Vec<String>,
    ) -> anyhow::Result<Vec<Account>> {
        let (today, days) = (self.today(), self.config.bank.notice_days);
        let mut soon: Vec<Account> =
            accounts.into_iter().filter(|account| account.ends_soon(today, days)).collect();
        if self.dry || soon.is_empty() {
            return Ok(soon);
        }
        let voice = self.voice(troubles).await;
        let now = self.ask().await?;
        let mut news = Vec::new();
        for account in soon.drain(..) {
            let views = self.views(Some(&account.name), Some(&now)).await?;
            let Some(view) = views.first() else { continue };
            if self.tell_end(&voice, view, troubles).await? {
                news.push(account);
            }
        }
        self.deliver(&voice, troubles).await;
        Ok(news)
    }

    /// Everything that is to be done regularly, with these accounts only, or with all. Charges and statements are about
    /// all of them.
    ///
    /// # Errors
    /// If Slurm's accounts or the store cannot be read. What fails of one account stops no other.
    pub async fn whole_check(&self, only: Option<&[&str]>) -> anyhow::Result<Whole> {
        let mut whole = Whole::default();
        let today = self.today();
        let settings = &self.config.bank;
        let mut going_on = Vec::new();
        for (name, account) in self.store.accounts().await? {
            if !self.looks_at(&name) || only.is_some_and(|only| !only.contains(&name.as_str())) {
                continue;
            }
            if settings.enforce_end_date && today > account.end {
                match self.expire(&name).await {
                    Ok(anew) => {
                        whole.report.settled.extend(anew.report.settled);
                        whole.ended.push(account);
                    }
                    Err(error) => whole.troubles.push(format!("{error:#}")),
                }
            } else {
                going_on.push(account);
            }
        }
        whole.soon = self.check_ends(going_on, &mut whole.troubles).await?;
        let settled = std::mem::take(&mut whole.report.settled);
        whole.report = self.check(only).await?;
        whole.report.settled.extend(settled);
        if only.is_some() {
            return Ok(whole);
        }
        whole.troubles.extend(self.wrong_settings(&self.slurm.clusters().await?).await);
        if settings.charge && !self.dry {
            match self.charge().await {
                Ok(charged) if charged.unbilled > 0 => tracing::warn!(
                    runs = charged.unbilled,
                    "have no billing weight and are not charged"
                ),
                Ok(_) => {}
                Err(error) => {
                    whole.troubles.push(format!("nothing is charged to the ledger: {error:#}"));
                }
            }
        }
        self.send_statements(&mut whole.troubles).await?;
        Ok(whole)
    }

    /// Sends the statements of the last month that were not sent yet.
    async fn send_statements(&self, troubles: &mut Vec<String>) -> anyhow::Result<()> {
        let mut silent = Vec::new();
        // What is wrong with mail was said by the check.
        let voice = self.voice(&mut silent).await;
        let Some(due) = self.due_statements(&voice, self.today()).await? else { return Ok(()) };
        if self.config.bank.charge
            && let Some(cluster) = self.not_collected(due.to).await?
        {
            troubles.push(format!(
                "statements wait: the archive does not have all jobs of {cluster} that ended before \
                 {}, so what they used is not charged yet (`steward collect`)",
                due.to
            ));
            return Ok(());
        }
        if self.tell_statements(&voice, &due, troubles).await? > 0 {
            self.deliver(&voice, troubles).await;
        }
        Ok(())
    }
}
