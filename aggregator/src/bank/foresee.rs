//! What a change of an account would lead to in Slurm, before it is made.

use steward_common::bank::{Account, Change, Units};

use super::Bank;
use super::check::Report;

impl Bank {
    /// What a check after this change would tell Slurm about holds; only for a bank that changes nothing.
    ///
    /// # Errors
    /// If Slurm's accounts or the store cannot be read.
    pub async fn foresee(&self, account: &Account, change: &Change) -> anyhow::Result<Report> {
        let mut report = Report::default();
        let holds = self.store.holds().await?;
        let is_held = holds.keys().any(|(name, _)| *name == account.name);
        if !self.dry || !(is_held || change.reset) {
            return Ok(report);
        }
        let mut now = self.ask().await?;
        if change.reset {
            for used in now.used.values_mut().flatten() {
                used.entry(account.name.clone()).and_modify(|used| *used = Units::ZERO);
            }
        }
        report.troubles.extend(now.troubles());
        let after = account.after(change);
        let checked = self.check_one(&after, &now, &holds, &mut report.troubles).await?;
        report.accounts.push(checked);
        Ok(report)
    }
}
