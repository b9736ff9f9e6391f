//! The task that checks all accounts of the bank.

use std::sync::{Arc, PoisonError};

use super::task::Setup;
use crate::bank::Bank;
use crate::output::bank_page::page;
use crate::shutdown::Shutdown;
use crate::store::Store;

/// Who does it, in the ledger.
const ACTOR: &str = "steward serve";

/// Checks, and puts up what was found. What could not be done is said and counted; the rest is done all the same.
///
/// # Errors
/// If Slurm's accounts or the store cannot be read.
pub async fn run(setup: Setup, shutdown: Shutdown) -> anyhow::Result<()> {
    let store = Store::at(setup.config.store()).await?;
    let config = Arc::clone(&setup.config);
    let bank = Bank::open(config, store.clone(), ACTOR.to_owned(), &shutdown).await;
    let done = check(&bank).await;
    store.close().await;
    *setup.counts.bank.lock().unwrap_or_else(PoisonError::into_inner) = done?;
    Ok(())
}

async fn check(bank: &Bank) -> anyhow::Result<String> {
    let whole = bank.whole_check(None).await?;
    let troubles: Vec<&String> = whole.report.troubles.iter().chain(&whole.troubles).collect();
    for trouble in &troubles {
        tracing::warn!("bank: {trouble}");
    }
    let now = bank.ask().await?;
    let views = bank.views(None, Some(&now)).await?;
    Ok(page(&views, whole.report.unbanked.len(), troubles.len())?)
}
