//! `steward archive forget-user`: from the archive, then from the store.

use serde_json::{Map, Value, json};
use tokio::runtime::Handle;

use super::{Place, failed, lock, now};
use crate::archive::Archive;
use crate::command::{BadInput, Outcome, ask};
use crate::config::Config;
use crate::keep::KeepError;
use crate::keep::forget::{self, Gone};
use crate::output::number::so_many;
use crate::output::progress::Progress;
use crate::shutdown::Shutdown;
use crate::store::Store;
use crate::store::forget::Forgot;

/// What is asked for.
pub(super) struct Wish<'a> {
    /// Who.
    pub(super) user: &'a str,
    /// Whether nobody is to be asked.
    pub(super) yes: bool,
    /// Whether a program reads the answer.
    pub(super) json: bool,
    /// Where.
    pub(super) place: &'a Place,
}

/// What became of the store.
enum Memory {
    /// Another archive was named than the one that the store belongs to.
    Another,
    /// There is none.
    None,
    Forgot(Forgot),
    /// It could not be asked.
    Failed(String),
}

pub(super) fn run(
    archive: &Archive,
    wish: &Wish<'_>,
    config: &Config,
    shutdown: &Shutdown,
    handle: &Handle,
) -> anyhow::Result<Outcome> {
    let user = wish.user;
    if user.is_empty() {
        return Err(BadInput("whom to forget?".to_owned()).into());
    }
    let cluster = wish.place.cluster.as_ref().map(ToString::to_string);
    let order = forget::Order {
        user,
        cluster: cluster.as_deref(),
        now: now(),
        stop: &|| shutdown.is_due(),
    };
    if !wish.yes {
        let runs = forget::count(archive, &order)?;
        let them = if runs == 1 { "it" } else { "them" };
        let runs = so_many(runs, "run");
        let question = format!("The archive has {runs} of {user}. Remove {them} for good?");
        if !ask::confirm(&question, "--yes")? {
            return Ok(Outcome::failed("nothing was changed\n"));
        }
    }
    let progress = Progress::new("forgetting");
    let lock = lock(archive, &progress);
    let done = lock.map_err(KeepError::from).and_then(|lock| forget::run(archive, lock, &order));
    progress.end();
    let (gone, _) = done.map_err(failed)?;
    let memory = match &wish.place.data_dir {
        Some(place) if *place != config.archive.directory => Memory::Another,
        _ => handle.block_on(store(config, &order)),
    };
    let text = if wish.json { as_json(gone, &memory)? } else { as_text(gone, &memory, user) };
    Ok(match memory {
        Memory::Failed(_) => Outcome::in_part(text),
        _ => Outcome::done(text),
    })
}

async fn store(config: &Config, order: &forget::Order<'_>) -> Memory {
    let work = async {
        let Some(store) = Store::existing(config.store()).await? else { return Ok(Memory::None) };
        let forgot = store.forget_user(order.user, order.cluster, order.now).await;
        store.close().await;
        forgot.map(Memory::Forgot)
    };
    work.await.unwrap_or_else(|error| Memory::Failed(error.to_string()))
}

fn as_text(gone: Gone, memory: &Memory, user: &str) -> String {
    let Gone { runs, rows, files } = gone;
    let mut text = if (runs, rows) == (0, 0) {
        // The name is kept as a digest all the same: a slip in it does no harm, and is to be seen.
        format!(
            "the archive has no run of {user}; what this user submitted until now will not be \
             collected either\n"
        )
    } else {
        let were = if files == 1 { "was" } else { "were" };
        format!(
            "{} and {} are gone; {} {were} written anew\n",
            so_many(runs, "run"),
            so_many(rows, "row"),
            so_many(files, "file")
        )
    };
    let forgot = match memory {
        Memory::None => return text,
        Memory::Another => {
            return text + "the store was not looked at: leave out --data-dir for that\n";
        }
        Memory::Failed(why) => {
            return text
                + &format!(
                    "the store still has what it had of {user}: {why}; do this again then\n"
                );
        }
        Memory::Forgot(forgot) => forgot,
    };
    let all: Vec<String> =
        forgot.gone.iter().map(|(kind, entries)| format!("{entries} {kind}")).collect();
    text += &match all.as_slice() {
        [] => "nothing went from the store\n".to_owned(),
        all => format!("gone from the store: {}\n", all.join(", ")),
    };
    if !forgot.left.is_empty() {
        text += &format!("these entries of the store still name {user}:\n");
    }
    for left in &forgot.left {
        text += &format!("  {:>6} {}: {}\n", left.entries, left.kind, left.why);
    }
    text
}

fn as_json(gone: Gone, memory: &Memory) -> anyhow::Result<String> {
    let Gone { runs, rows, files } = gone;
    let key = |kind: &str| kind.replace(' ', "_");
    let store = match memory {
        Memory::None | Memory::Another => Value::Null,
        Memory::Failed(why) => json!({ "error": why }),
        Memory::Forgot(forgot) => {
            let gone: Map<String, Value> =
                forgot.gone.iter().map(|(kind, entries)| (key(kind), (*entries).into())).collect();
            let left = forgot.left.iter().map(
                |one| json!({ "kind": key(one.kind), "entries": one.entries, "why": one.why }),
            );
            json!({ "gone": gone, "left": left.collect::<Vec<Value>>() })
        }
    };
    let answer = json!({ "runs": runs, "rows": rows, "files": files, "store": store });
    Ok(serde_json::to_string_pretty(&answer)? + "\n")
}
