//! One run: looking at all clusters, then acting.

use std::sync::Arc;
use std::time::Duration;

use steward_common::rule::Instance;
use steward_common::time::Timestamp;
use steward_common::window::Window;

use super::case::{Sight, rule_id};
use super::engine::{Engine, Line};
use super::mailed::{Mailer, Voice, Way};
use super::note::Program;
use super::slurm::Commands;
use crate::archive;
use crate::command::BadInput;
use crate::config::{CancelMode as Mode, Config};
use crate::evaluate::{self, Order, Trouble};
use crate::mail::Post;
use crate::shutdown::Shutdown;
use crate::store::Store;

/// Jobs that run are seen whatever the window is; those that ended within it are of no interest.
const WINDOW: Duration = Duration::from_secs(600);

/// How long Slurm may take from scancel to the end of a job, by its own word.
const PATIENCE: Duration = Duration::from_secs(15);

/// What came of a run.
#[derive(Debug)]
pub struct Report {
    /// What was really done.
    pub mode: Mode,
    /// What came of each job.
    pub lines: Vec<Line>,
    /// How many jobs with GPUs were measured too little to be judged: they are left.
    pub unknown: usize,
    /// What could not be asked.
    pub troubles: Vec<Trouble>,
}

/// Looks and acts, once.
///
/// # Errors
/// If nothing can be done at all: no instance of the rule, nobody who could warn, no store.
pub async fn once(
    config: &Arc<Config>,
    mode: Mode,
    actor: String,
    shutdown: &Shutdown,
) -> anyhow::Result<Report> {
    let instances = config.rules.instances()?;
    if !instances.iter().any(|instance| instance.rule.id().as_str() == rule_id()) {
        let why = format!("the rule {} is switched off: there is nothing to do", rule_id());
        return Err(BadInput(why).into());
    }
    let by_program = !config.cancel.tell.is_empty();
    if mode != Mode::DryRun
        && !by_program
        && let Err(missing) = config.mail.ready()
    {
        let why = format!(
            "cancel.mode is {}, and nobody can be warned: {missing}; or set cancel.tell, or \
             cancel.mode = \"dry-run\"",
            mode.name()
        );
        return Err(BadInput(why).into());
    }
    let now = present();
    let (sight, troubles) = {
        let (config, shutdown) = (Arc::clone(config), shutdown.clone());
        let work = tokio::task::spawn_blocking(move || look(&config, &instances, now, &shutdown));
        work.await??
    };
    let store = Store::at(config.store()).await?;
    let way = if by_program {
        Some(Way::Program(Program { argv: config.cancel.tell.clone() }))
    } else if mode == Mode::DryRun {
        None
    } else {
        let (config, store, shutdown) = (Arc::clone(config), store.clone(), shutdown.clone());
        let post = Post::open(&config)?;
        Some(Way::Mail(Box::new(Mailer { config, store, post, shutdown })))
    };
    let messenger = way.map(|way| Voice { way, config: Arc::clone(config), store: store.clone() });
    let engine = Engine {
        config: config.cancel.clone(),
        mode,
        store: store.clone(),
        messenger,
        slurm: Arc::new(Commands { config: Arc::clone(config) }),
        actor,
        patience: PATIENCE,
        clock: present,
    };
    let lines = engine.pass(&sight, now).await;
    store.close().await;
    Ok(Report { mode, lines: lines?, unknown: sight.unknown, troubles })
}

fn present() -> Timestamp {
    Timestamp::new(jiff::Timestamp::now().as_second())
}

fn look(
    config: &Arc<Config>,
    instances: &[Instance],
    now: Timestamp,
    shutdown: &Shutdown,
) -> anyhow::Result<(Sight, Vec<Trouble>)> {
    let archive = archive::open(&config.archive.directory, config)?;
    let window = Window::new(now.before(WINDOW), now)
        .ok_or_else(|| anyhow::anyhow!("the clock stands at the beginning of time"))?;
    let order = Order { window, now, clusters: Vec::new(), live: true };
    let mut troubles = Vec::new();
    let gathered = evaluate::look(config, &archive, &order, shutdown, &mut troubles)?;
    // Jobs that run are not in the archive.
    troubles.retain(|trouble| trouble.what != "archive");
    let mut sight = Sight::default();
    for one in &gathered {
        sight.add(one, instances);
    }
    Ok((sight, troubles))
}
