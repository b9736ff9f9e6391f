//! The tasks that write to people.

use anyhow::Context as _;
use jiff::Timestamp as Moment;
use steward_common::time::Timestamp;

use super::evaluating;
use super::task::Setup;
use crate::mail::Post;
use crate::notice::run::{Recipients, Run};
use crate::notice::{self, plan::Plan};
use crate::shutdown::Shutdown;

/// Everybody.
const ALL: Recipients = Recipients { users: true, administrators: true };

/// Evaluates, and tells users what was found.
///
/// # Errors
/// If the archive, the store or the mail settings cannot be used, or mails could not be sent.
pub async fn run(setup: Setup, shutdown: Shutdown) -> anyhow::Result<()> {
    let found = {
        let (setup, shutdown) = (setup.clone(), shutdown.clone());
        tokio::task::spawn_blocking(move || evaluating::look(&setup, &shutdown)).await??
    };
    let now = found.now;
    let plan = notice::prepare(
        &setup.config,
        Some(&setup.store),
        (&found.judged, &found.instances),
        found.window,
        None,
        now,
    )
    .await?;
    send(&setup, plan, now, &shutdown).await
}

/// Hands over what is still to be sent.
///
/// # Errors
/// If the store or the mail settings cannot be used, or mails could not be sent.
pub async fn post(setup: Setup, shutdown: Shutdown) -> anyhow::Result<()> {
    let now = Timestamp::new(Moment::now().as_second());
    send(&setup, Plan::default(), now, &shutdown).await
}

async fn send(
    setup: &Setup,
    plan: Plan,
    now: Timestamp,
    shutdown: &Shutdown,
) -> anyhow::Result<()> {
    let config = &setup.config;
    let post = Post::open(config).context("mail")?;
    let run = Run {
        config,
        store: &setup.store,
        post: &post,
        recipients: ALL,
        now,
        workday: notice::no_day(config, now)?.is_none(),
        shutdown,
    };
    let done = run.carry_out(plan).await?;
    for warning in &done.warnings {
        tracing::warn!("notices: {warning}");
    }
    let delivered = &done.delivered;
    if !done.told.is_empty() || !delivered.sent.is_empty() {
        let (users, mails) = (done.told.len(), delivered.sent.len());
        tracing::info!(users, mails, "notices");
    }
    for one in delivered.waiting.iter().chain(&delivered.given_up).chain(&delivered.unknown) {
        let (address, fate, said) = (&one.address, one.fate.name(), &one.said);
        tracing::warn!(address, fate, said, "mail");
    }
    match &delivered.down {
        Some(why) => anyhow::bail!("the mail server cannot be used, mails wait: {why}"),
        None => Ok(()),
    }
}
