//! Slurm's settings, without which accounting knows little.

use std::sync::Arc;

use super::{Finding, Patient, good, note, trouble};
use crate::source::slurm::settings::Settings;

/// Reads slurmctld's settings.
pub async fn check(patient: Arc<Patient>) -> Vec<Finding> {
    match patient.controller().await {
        Ok(told) => judge(&told.settings),
        Err(why) => vec![trouble(
            why.clone(),
            "see that scontrol works as this user (slurm.scontrol of steward.toml, SLURM_CONF) \
             and that slurmctld runs",
        )],
    }
}

fn judge(settings: &Settings) -> Vec<Finding> {
    let mut found = Vec::new();
    let value = |name: &str| settings.get(name).unwrap_or("not set").to_owned();
    if settings.get("AccountingStorageType") != Some("accounting_storage/slurmdbd") {
        found.push(trouble(
            format!("AccountingStorageType is {}", value("AccountingStorageType")),
            "set AccountingStorageType=accounting_storage/slurmdbd: without a database there are \
             no jobs to collect",
        ));
    }
    let gather = value("JobAcctGatherType");
    if gather == "not set" || gather.ends_with("/none") {
        found.push(trouble(
            format!("JobAcctGatherType is {gather}"),
            "set JobAcctGatherType=jobacct_gather/cgroup: without it no job has CPU time or memory",
        ));
    }
    // `30`, or `task=30,energy=60`; 0 is only at the end of a task.
    let frequency = value("JobAcctGatherFrequency");
    let seconds = frequency.split(',').find_map(|part| {
        let part = part.trim().trim_end_matches(" sec");
        part.strip_prefix("task=").unwrap_or(part).trim().parse::<u32>().ok()
    });
    match seconds {
        Some(0) => found.push(note(
            "JobAcctGatherFrequency is 0: memory is looked at only when a task ends",
            "set JobAcctGatherFrequency=30, or let agents measure the peak",
        )),
        Some(seconds) if seconds > 60 => found.push(note(
            format!("JobAcctGatherFrequency is {seconds} s: shorter peaks of memory are missed"),
            "set JobAcctGatherFrequency=30, or let agents measure the peak",
        )),
        _ => {}
    }
    if settings.lists("GresTypes", "gpu") && !settings.lists("AccountingStorageTRES", "gres/gpu") {
        found.push(trouble(
            "there are GPUs (GresTypes), but accounting does not count them",
            "add gres/gpu to AccountingStorageTRES: without it no job has GPUs",
        ));
    }
    for (name, what) in [
        ("ProctrackType", "processes may escape their job"),
        ("TaskPlugin", "jobs are not held to their CPUs and memory"),
    ] {
        if !value(name).contains("cgroup") {
            found.push(note(
                format!("{name} is {}: {what}, and agents see less", value(name)),
                format!("use the cgroup plugin in {name}"),
            ));
        }
    }
    if found.is_empty() {
        found.push(good(format!(
            "slurmdbd, {gather} every {frequency} s, TRES {}",
            value("AccountingStorageTRES")
        )));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::{Mark, has_trouble};

    /// Recorded from the testbed: see the README beside it.
    const REAL: &str =
        include_str!("../../../tests/fixtures/slurm-settings/scontrol-show-config.txt");

    fn with(name: &str, value: &str) -> Vec<Finding> {
        let line = REAL.lines().find(|line| line.starts_with(name)).unwrap();
        judge(&Settings::parse(&REAL.replace(line, &format!("{name} = {value}"))))
    }

    #[test]
    fn a_healthy_slurm_is_one_good_line() {
        let found = judge(&Settings::parse(REAL));
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].mark, Mark::Good);
    }

    #[test]
    fn each_setting_that_costs_something_is_named_with_what_to_do() {
        for (name, value, mark) in [
            ("AccountingStorageType", "accounting_storage/none", Mark::Trouble),
            ("JobAcctGatherType", "jobacct_gather/none", Mark::Trouble),
            ("JobAcctGatherType", "(null)", Mark::Trouble),
            ("JobAcctGatherFrequency", "0", Mark::Note),
            ("JobAcctGatherFrequency", "energy=30,task=300", Mark::Note),
            ("AccountingStorageTRES", "cpu,mem,energy,node,billing", Mark::Trouble),
            ("ProctrackType", "proctrack/linuxproc", Mark::Note),
            ("TaskPlugin", "task/affinity", Mark::Note),
        ] {
            let found = with(name, value);
            assert_eq!(found.len(), 1, "{name}={value}: {found:?}");
            assert_eq!(found[0].mark, mark, "{name}={value}");
            assert!(found[0].advice.is_some());
        }
        assert!(!has_trouble(&with("JobAcctGatherFrequency", "30")));
        assert!(!has_trouble(&with("TaskPlugin", "task/affinity,task/cgroup")));
    }
}
