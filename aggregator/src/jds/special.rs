//! Keys whose meaning depends on others.

use steward_common::rule::Setting;

use super::draft::{Draft, Refused, setting};
use super::keys::Kind;
use super::left::Reason;
use crate::source::yaml::Entry;

/// Takes over a key of `excess-cpu-memory`: two of its keys only work beside `cores_per_node`, which
/// Steward knows from Slurm.
pub fn take(draft: &mut Draft, entry: &Entry, all: &[Entry]) -> Result<(), Refused> {
    let has = |key: &str| all.iter().any(|entry| entry.key == key);
    match entry.key.as_str() {
        "cores_fraction" if has("cores_per_node") => {
            let share = setting(Kind::Number, &entry.value.value);
            draft.set("cores_fraction", share.map_err(|why| (Reason::Unfit, why))?, "")
        }
        "cores_fraction" => {
            Err((Reason::Dead, "has no effect there without cores_per_node".to_owned()))
        }
        "mem_per_node" if has("cores_per_node") => {
            draft.set("above_fair_share", Setting::Flag(true), "as mem_per_node and cores_per_node")
        }
        _ => Ok(()),
    }
}

/// What can be said only when all keys of an alert are known: those that have no effect because
/// another is not there, and those without which it does not run.
pub fn after(draft: &mut Draft, keys: &[Entry]) -> Vec<(&'static str, Reason, String)> {
    match draft.alert.rule {
        "cancel-zero-gpu-jobs" => stages(draft, keys),
        "multinode-cpu-fragmentation" => fragments(keys),
        _ => Vec::new(),
    }
}

/// Stages that Job Defense Shield leaves out are taken away again.
fn stages(draft: &mut Draft, keys: &[Entry]) -> Vec<(&'static str, Reason, String)> {
    let has = |key: &str| keys.iter().any(|entry| entry.key == key);
    let mut dead = Vec::new();
    let mut drop = |key: &'static str, option: &'static str, needs: &str| {
        if has(key) && draft.set(option, Setting::Text("none".to_owned()), "").is_ok() {
            dead.push((key, Reason::Dead, format!("has no effect there without {needs}")));
        }
    };
    if !has("cancel_minutes") {
        drop("first_warning_minutes", "first_warning", "cancel_minutes");
        drop("second_warning_minutes", "second_warning", "cancel_minutes");
    }
    for (key, option, other) in [
        ("sliding_warning_minutes", "sliding_warning", "sliding_cancel_minutes"),
        ("sliding_cancel_minutes", "sliding_cancel", "sliding_warning_minutes"),
    ] {
        if !has(other) {
            drop(key, option, other);
        } else if !has("jobid_cache_path") {
            drop(key, option, "jobid_cache_path");
        }
    }
    dead
}

/// It counts by the size of nodes, and then needs two shares, or by a number of cores alone.
fn fragments(keys: &[Entry]) -> Vec<(&'static str, Reason, String)> {
    let has = |key: &str| keys.iter().any(|entry| entry.key == key);
    if has("cores_per_node_thres") {
        return Vec::new();
    }
    let shares = [("cores_fraction", "0.5"), ("safety_fraction", "0.2")];
    let missing = shares.into_iter().filter(|(key, _)| !has(key));
    missing
        .map(|(key, held)| {
            let why = format!(
                "Job Defense Shield does not run without it or cores_per_node_thres; Steward's {key} \
                 = {held} holds"
            );
            (key, Reason::Missing, why)
        })
        .collect()
}
