//! `steward import jds-violations`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use jiff::tz::TimeZone;
use serde_json::json;
use steward_common::rule::Instance;
use steward_common::time::Timestamp;

use super::super::{BadInput, End, Outcome};
use crate::config::Config;
use crate::jds::violations::{self, Left, Violations};
use crate::output::json;
use crate::output::number::counted;
use crate::output::plain::visible;
use crate::store::Store;
use crate::store::notices::Notice;

/// How many of what could not be read people see.
const SHOWN: usize = 20;

/// How it is to be done.
#[derive(Clone, Copy, Debug)]
pub(super) struct How {
    /// Nothing is written.
    pub(super) dry_run: bool,
    /// For programs.
    pub(super) json: bool,
}

/// Takes over what users were told.
pub(super) async fn run(
    from: &Path,
    zone: TimeZone,
    how: How,
    config: &Config,
) -> anyhow::Result<Outcome> {
    let listed = config.rules.listed()?;
    let instances: Vec<Instance> = listed.into_iter().map(|one| one.instance).collect();
    let now = Timestamp::new(jiff::Timestamp::now().as_second());
    let mut found = violations::read(from, &instances, &zone, now).map_err(BadInput)?;
    violations::number(&mut found.notices, config.notices.ladder.memory.0);
    let new = if how.dry_run {
        let known = match Store::existing(config.store()).await? {
            Some(store) => {
                let notices = store.notices(Timestamp::new(0)).await;
                store.close().await;
                notices?
            }
            None => Vec::new(),
        };
        let known: BTreeSet<_> = known.iter().map(key).collect();
        found.notices.iter().filter(|notice| !known.contains(&key(notice))).count() as u64
    } else {
        let store = Store::at(config.store()).await?;
        let new = store.take_over(&found.notices).await;
        store.close().await;
        new?
    };
    let text = if how.json {
        for_programs(&found, new, how.dry_run)
    } else {
        text(&found, new, how.dry_run)
    };
    let end = if found.left.is_empty() { End::Done } else { End::InPart };
    Ok(Outcome { text, end })
}

fn key(notice: &Notice) -> (String, String, String, Timestamp) {
    (notice.instance.clone(), notice.user.clone(), notice.cluster.clone(), notice.at)
}

/// Notices and users by instance.
fn by_instance(found: &Violations) -> BTreeMap<&str, (u64, BTreeSet<&str>)> {
    let mut all: BTreeMap<&str, (u64, BTreeSet<&str>)> = BTreeMap::new();
    for notice in &found.notices {
        let (count, users) = all.entry(notice.instance.as_str()).or_default();
        *count += 1;
        users.insert(notice.user.as_str());
    }
    all
}

fn text(found: &Violations, new: u64, dry_run: bool) -> String {
    let (were, is_new) = (if dry_run { "would be" } else { "were" }, counted(new, "notice"));
    let mut text = format!("{is_new} {were} taken over\n");
    let known = (found.notices.len() as u64).saturating_sub(new);
    if known > 0 {
        text += &format!("  {known} are here already\n");
    }
    for (instance, (notices, users)) in by_instance(found) {
        let users = counted(users.len() as u64, "user");
        text += &format!("  {instance}: {} to {users}\n", counted(notices, "notice"));
    }
    if found.left.is_empty() {
        return text;
    }
    text += &format!("Not taken over ({}):\n", found.left.len());
    for left in found.left.iter().take(SHOWN) {
        text += &format!("  {}: {}\n", visible(&place(left)), visible(&left.why));
    }
    if let Some(more) = found.left.len().checked_sub(SHOWN).filter(|more| *more > 0) {
        text += &format!("  {more} more; --json names all\n");
    }
    text
}

fn place(left: &Left) -> String {
    let file = left.file.display();
    left.line.map_or_else(|| file.to_string(), |line| format!("{file}:{line}"))
}

fn for_programs(found: &Violations, new: u64, dry_run: bool) -> String {
    let left: Vec<_> = found
        .left
        .iter()
        .map(|one| json!({ "file": one.file.display().to_string(), "line": one.line, "why": one.why }))
        .collect();
    let instances: serde_json::Map<_, _> = by_instance(found)
        .into_iter()
        .map(|(name, (notices, users))| {
            (name.to_owned(), json!({ "notices": notices, "users": users.len() }))
        })
        .collect();
    json::text(&json!({
        "dry_run": dry_run,
        "rows": found.rows,
        "notices": found.notices.len(),
        "new": new,
        "instances": instances,
        "left": left,
    }))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::config::Config;

    #[tokio::test]
    async fn a_second_import_adds_nothing_and_a_dry_run_writes_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let logs = dir.path().join("violations/low_cpu_efficiency");
        std::fs::create_dir_all(&logs).unwrap();
        let text = "User,Cluster,Alert-Partitions,Partition(s),CPU-Hours,CPU-Rank,Efficiency,Jobs,Email-Sent\n\
                    al,c,*,\"cpu,mem\",100,1/9,12%,40,10/26/2026 09:00:00\n\
                    al,c,*,cpu,100,1/9,12%,7,11/02/2026 09:00:00\n\
                    al,c,*,cpu,100,1/9,12%,7,yesterday\n";
        std::fs::write(logs.join("al.csv"), text).unwrap();
        let mut config = Config::default();
        config.store.path = Some(dir.path().join("a.db"));
        let from = dir.path().join("violations");
        let take = async |dry_run: bool| {
            let how = How { dry_run, json: true };
            let outcome = run(&from, TimeZone::UTC, how, &config).await.unwrap();
            assert_eq!(outcome.end, End::InPart, "a row cannot be read");
            serde_json::from_str::<Value>(&outcome.text).unwrap()
        };
        let dry = take(true).await;
        assert_eq!((&dry["new"], &dry["notices"], &dry["rows"]), (&2.into(), &2.into(), &3.into()));
        assert_eq!(dry["left"][0]["line"], 4);
        assert!(!dir.path().join("a.db").exists());
        assert_eq!(take(false).await["new"], 2);
        assert_eq!(
            (take(false).await["new"].clone(), take(true).await["new"].clone()),
            (0.into(), 0.into())
        );
        let store = Store::open(&dir.path().join("a.db")).await.unwrap();
        let notices = store.notices(Timestamp::new(0)).await.unwrap();
        let shown: Vec<_> =
            notices.iter().map(|one| (one.instance.as_str(), one.step, one.jobs)).collect();
        assert_eq!(
            shown,
            [("low-cpu-efficiency", 1, Some(40)), ("low-cpu-efficiency", 2, Some(7))]
        );
        let how = How { dry_run: false, json: false };
        let said = run(&from, TimeZone::UTC, how, &config).await.unwrap().text;
        for line in [
            "0 notices were taken over\n",
            "  2 are here already\n",
            "  low-cpu-efficiency: 2 notices to 1 user\n",
            "al.csv:4: Email-Sent: expected MM/DD/YYYY",
        ] {
            assert!(said.contains(line), "{line:?} is not in {said}");
        }
    }

    #[tokio::test]
    async fn a_directory_that_is_none_is_bad_input() {
        let how = How { dry_run: true, json: false };
        let error = run(Path::new("/nonexistent"), TimeZone::UTC, how, &Config::default())
            .await
            .unwrap_err();
        assert_eq!(crate::command::code(&error), 2, "{error}");
    }
}
