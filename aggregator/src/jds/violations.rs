//! What Job Defense Shield told users: its logs of violations, as notices of ours.
//!
//! `DIR/<violation>/<user>.csv` has a row for each job of a mail or for each mail, with the time of the mail in
//! `Email-Sent`. Rows of the same time are one notice.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use steward_common::id::ClusterName;
use steward_common::rule::{self, Instance};
use steward_common::time::Timestamp;

use crate::source::csv::{Record, records};
use crate::store::notices::Notice;

/// More than any log is.
const MOST: u64 = 256 << 20;

/// What stands for all partitions.
const ALL: [&str; 2] = ["ALL-PARTITIONS", "*"];

/// Something that could not be taken over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// The file or directory.
    pub file: PathBuf,
    /// The line, if it is about one.
    pub line: Option<usize>,
    /// Why.
    pub why: String,
}

/// What the logs say.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Violations {
    /// The notices, the oldest first.
    pub notices: Vec<Notice>,
    /// What could not be taken over.
    pub left: Vec<Left>,
    /// How many rows were read.
    pub rows: usize,
}

/// The mails of one log: by cluster, partitions and time, how many jobs they were about.
type Mails = BTreeMap<(String, String, Timestamp), Jobs>;

#[derive(Clone, Debug, Default)]
struct Jobs {
    named: BTreeSet<String>,
    counted: u64,
}

/// Reads all logs. `instances` are the rules of this site, on or off.
///
/// # Errors
/// If the directory cannot be read, or holds no logs.
pub fn read(
    dir: &Path,
    instances: &[Instance],
    zone: &TimeZone,
    now: Timestamp,
) -> Result<Violations, String> {
    let mut found = Violations::default();
    let mut notices: BTreeMap<(String, String, String, Timestamp), Notice> = BTreeMap::new();
    let mut logs = 0;
    for directory in entries(dir)?.into_iter().filter(|path| path.is_dir()) {
        let violation = name(&directory);
        let Some(id) = rule_of(&violation) else {
            let why = format!("{violation:?} is no alert of Job Defense Shield that is known");
            found.left.push(Left { file: directory, line: None, why });
            continue;
        };
        for file in entries(&directory)? {
            let Some(user) = name(&file).strip_suffix(".csv").map(str::to_owned) else { continue };
            logs += 1;
            let mails = match text(&file) {
                Ok(text) => mails(&file, &user, &text, zone, now, &mut found),
                Err(why) => {
                    found.left.push(Left { file, line: None, why });
                    continue;
                }
            };
            for ((cluster, partitions, at), jobs) in mails {
                // A log of mails, not of jobs, does not say how many they were about.
                let jobs = Some(jobs.counted.max(jobs.named.len() as u64)).filter(|jobs| *jobs > 0);
                for instance in instances_of(id, &cluster, &partitions, instances) {
                    let key = (instance.clone(), user.clone(), cluster.clone(), at);
                    let (rule, user, cluster) = (id.to_owned(), user.clone(), cluster.clone());
                    let (step, wasted, message) = (1, None, String::new());
                    let one =
                        Notice { instance, rule, user, cluster, at, step, jobs, wasted, message };
                    notices
                        .entry(key)
                        // Two of its alerts may have become one of ours.
                        .and_modify(|known| known.jobs = known.jobs.zip(jobs).map(|(a, b)| a + b))
                        .or_insert(one);
                }
            }
        }
    }
    if logs == 0 && found.left.is_empty() {
        return Err(format!(
            "{}: there are no logs such as low_cpu_efficiency/alice.csv; give the directory of \
             violation-logs-path",
            dir.display()
        ));
    }
    found.notices = notices.into_values().collect();
    found.notices.sort_by(|a, b| (a.at, &a.user, &a.instance).cmp(&(b.at, &b.user, &b.instance)));
    Ok(found)
}

/// Numbers the notices of each user, instance and cluster: from 1 on, and anew after a time without.
pub fn number(notices: &mut [Notice], memory: std::time::Duration) {
    let mut last: BTreeMap<(String, String, String), (Timestamp, u32)> = BTreeMap::new();
    for notice in notices {
        let key = (notice.instance.clone(), notice.user.clone(), notice.cluster.clone());
        let step = match last.get(&key) {
            Some((at, step)) if notice.at.since(*at).is_some_and(|time| time <= memory) => step + 1,
            _ => 1,
        };
        notice.step = step;
        last.insert(key, (notice.at, step));
    }
}

/// The rule that an alert of theirs became.
fn rule_of(violation: &str) -> Option<&'static str> {
    let id = match violation {
        "excessive_time_limits_cpu" => "excessive-time-cpu".to_owned(),
        "excessive_time_limits_gpu" => "excessive-time-gpu".to_owned(),
        other => other.replace('_', "-"),
    };
    rule::RULES.iter().map(|(known, _)| *known).find(|known| *known == id)
}

/// The instances that would tell the same user of the same: those of exactly these partitions, else all that
/// share one with them, else the rule as it is shipped. A user should rather be left in peace once too often.
fn instances_of(id: &str, cluster: &str, partitions: &str, all: &[Instance]) -> Vec<String> {
    let is_all = ALL.contains(&partitions);
    let meant: BTreeSet<&str> = partitions.split(',').map(str::trim).collect();
    let here: Vec<&Instance> = all
        .iter()
        .filter(|one| one.rule.id().as_str() == id)
        .filter(|one| {
            one.scope.clusters.is_empty() || one.scope.clusters.iter().any(|name| name == cluster)
        })
        .collect();
    let own =
        |one: &Instance| -> BTreeSet<String> { one.scope.partitions.iter().cloned().collect() };
    let exact = |one: &&&Instance| {
        let own = own(one);
        if is_all {
            own.is_empty()
        } else {
            own.iter().map(String::as_str).eq(meant.iter().copied())
        }
    };
    let shares = |one: &&&Instance| {
        let own = own(one);
        is_all || own.is_empty() || own.iter().any(|name| meant.contains(name.as_str()))
    };
    let names = |of: &dyn Fn(&&&Instance) -> bool| -> Vec<String> {
        here.iter().filter(|one| of(one)).map(|one| one.name.clone()).collect()
    };
    let found = [names(&exact), names(&shares)].into_iter().find(|names| !names.is_empty());
    found.unwrap_or_else(|| vec![id.to_owned()])
}

fn mails(
    file: &Path,
    user: &str,
    text: &str,
    zone: &TimeZone,
    now: Timestamp,
    found: &mut Violations,
) -> Mails {
    let mut mails = Mails::new();
    let mut rows = records(text).into_iter();
    let header = rows.next().map(|head| head.fields).unwrap_or_default();
    let column = |name: &str| header.iter().position(|field| field.trim() == name);
    let (Some(cluster), Some(sent)) = (column("Cluster"), column("Email-Sent")) else {
        let why = "its first line does not name the columns Cluster and Email-Sent".to_owned();
        found.left.push(Left { file: file.to_owned(), line: Some(1), why });
        return mails;
    };
    let columns = Columns {
        user: column("User"),
        cluster,
        partitions: column("Alert-Partitions"),
        job: column("JobID"),
        jobs: column("Jobs"),
        sent,
        count: header.len(),
    };
    for row in rows {
        found.rows += 1;
        match columns.read(&row, user, zone, now) {
            Ok((key, job, jobs)) => {
                let of = mails.entry(key).or_default();
                of.named.extend(job);
                of.counted += jobs;
            }
            Err(why) => {
                found.left.push(Left { file: file.to_owned(), line: Some(row.line), why });
            }
        }
    }
    mails
}

/// Where things stand in a row.
struct Columns {
    user: Option<usize>,
    cluster: usize,
    partitions: Option<usize>,
    job: Option<usize>,
    jobs: Option<usize>,
    sent: usize,
    count: usize,
}

impl Columns {
    #[allow(clippy::type_complexity, reason = "named where it is used")]
    fn read(
        &self,
        row: &Record,
        user: &str,
        zone: &TimeZone,
        now: Timestamp,
    ) -> Result<((String, String, Timestamp), Option<String>, u64), String> {
        if row.fields.len() != self.count {
            let found = row.fields.len();
            return Err(format!("has {found} fields, the first line names {}", self.count));
        }
        let field = |at: usize| row.fields.get(at).map(|field| field.trim()).unwrap_or_default();
        if let Some(other) = self.user.map(field).filter(|other| *other != user) {
            return Err(format!("is of user {other:?}, the file of {user:?}"));
        }
        let cluster = field(self.cluster);
        ClusterName::new(cluster).map_err(|_| format!("{cluster:?} is no cluster"))?;
        let sent = field(self.sent);
        let at = moment(sent, zone)
            .ok_or_else(|| format!("Email-Sent: expected MM/DD/YYYY HH:MM:SS, found {sent:?}"))?;
        if at > now {
            return Err(format!("Email-Sent: {sent} has not come yet"));
        }
        let partitions = self.partitions.map_or("*", field).to_owned();
        let job = self.job.map(field).filter(|job| !job.is_empty()).map(str::to_owned);
        // It is a whole number, which other programs may have written as 3.0.
        let jobs = self.jobs.map(field).and_then(|jobs| jobs.trim_end_matches(".0").parse().ok());
        Ok(((cluster.to_owned(), partitions, at), job, jobs.unwrap_or(0)))
    }
}

/// A moment on the site's clocks. One that came twice is the first, one that never came the time after the gap.
fn moment(text: &str, zone: &TimeZone) -> Option<Timestamp> {
    let time = DateTime::strptime("%m/%d/%Y %H:%M:%S", text).ok()?;
    Some(Timestamp::new(time.to_zoned(zone.clone()).ok()?.timestamp().as_second()))
}

fn entries(dir: &Path) -> Result<Vec<PathBuf>, String> {
    let fault = |error: std::io::Error| format!("{}: {error}", dir.display());
    let mut all: Vec<PathBuf> = std::fs::read_dir(dir)
        .map_err(fault)?
        .map(|entry| Ok(entry.map_err(fault)?.path()))
        .collect::<Result<_, String>>()?;
    all.sort();
    Ok(all)
}

fn name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

fn text(path: &Path) -> Result<String, String> {
    let size = std::fs::metadata(path).map_err(|error| error.to_string())?.len();
    if size > MOST {
        return Err("is too large for a log".to_owned());
    }
    std::fs::read_to_string(path).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    /// 2026-11-16T12:00:00Z
    const NOW: Timestamp = Timestamp::new(1_794_830_400);

    fn write(dir: &Path, violation: &str, user: &str, text: &str) {
        let dir = dir.join(violation);
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join(format!("{user}.csv")), text).unwrap();
    }

    fn instances(text: &str) -> Vec<Instance> {
        let config = Config::parse(Path::new("a.toml"), text).unwrap();
        config.rules.listed().unwrap().into_iter().map(|one| one.instance).collect()
    }

    fn berlin() -> TimeZone {
        TimeZone::get("Europe/Berlin").unwrap()
    }

    /// Instance, user, cluster, time, step and jobs.
    fn shown(found: &Violations) -> Vec<(String, String, i64, u32, Option<u64>)> {
        let one = |one: &Notice| {
            (
                format!("{}@{}", one.instance, one.cluster),
                one.user.clone(),
                one.at.get(),
                one.step,
                one.jobs,
            )
        };
        found.notices.iter().map(one).collect()
    }

    /// Nobody is told of no job: 0 stands for a number that the log does not have.
    fn line(
        instance: &str,
        user: &str,
        at: i64,
        step: u32,
        jobs: u64,
    ) -> (String, String, i64, u32, Option<u64>) {
        (instance.to_owned(), user.to_owned(), at, step, Some(jobs).filter(|jobs| *jobs > 0))
    }

    #[test]
    fn rows_of_one_time_are_one_notice_on_the_clocks_of_the_site() {
        let dir = tempfile::tempdir().unwrap();
        write(
            dir.path(),
            "zero_util_gpu_hours",
            "alice",
            "User,Cluster,Alert-Partitions,JobID,Partition,GPUs,GPUs-Unused,GPU-Hours-At-0%,Email-Sent\n\
             alice,della,\"gpu,mig\",101,gpu,1,1,24,11/02/2026 09:00:00\n\
             alice,della,\"gpu,mig\",102,mig,1,1,12,11/02/2026 09:00:00\n\
             alice,della,\"gpu,mig\",103_4,gpu,1,1,30,07/10/2026 09:00:01\n",
        );
        write(
            dir.path(),
            "excessive_time_limits_cpu",
            "bob",
            "User,Cluster,Alert-Partitions,CPU-Hours-Unused,Jobs,Email-Sent\r\n\
             bob,della,ALL-PARTITIONS,51234,643,11/09/2026 09:00:00\r\n",
        );
        let found = read(dir.path(), &instances(""), &berlin(), NOW).unwrap();
        assert_eq!((found.rows, &found.left), (4, &vec![]));
        // 9 o'clock in Berlin is 8 in winter and 7 in summer.
        assert_eq!(
            shown(&found),
            [
                line("zero-util-gpu-hours@della", "alice", 1_783_666_801, 1, 1),
                line("zero-util-gpu-hours@della", "alice", 1_793_606_400, 1, 2),
                line("excessive-time-cpu@della", "bob", 1_794_211_200, 1, 643),
            ]
        );
    }

    #[test]
    fn a_notice_is_one_of_the_instance_with_the_same_partitions() {
        let all = instances(
            "[rules.low-cpu-efficiency]\npartitions = [\"cpu\"]\n\
             [rules.big]\nrule = \"low-cpu-efficiency\"\npartitions = [\"b\", \"a\"]\n\
             [rules.other]\nrule = \"low-cpu-efficiency\"\nclusters = [\"tiger\"]\n",
        );
        let of = |cluster: &str, partitions: &str| {
            instances_of("low-cpu-efficiency", cluster, partitions, &all).join(" ")
        };
        assert_eq!(of("della", "cpu"), "low-cpu-efficiency");
        assert_eq!(of("della", "a,b"), "big");
        assert_eq!(of("della", "a,cpu"), "low-cpu-efficiency big");
        assert_eq!(of("tiger", "ALL-PARTITIONS"), "other");
        assert_eq!(of("tiger", "*"), "other");
        assert_eq!(of("della", "*"), "low-cpu-efficiency big");
        assert_eq!(of("della", "gone"), "low-cpu-efficiency");
        assert_eq!(of("tiger", "gone"), "other");
    }

    #[test]
    fn what_cannot_be_read_is_named_with_file_and_line_and_the_rest_is_taken() {
        let dir = tempfile::tempdir().unwrap();
        let head = "User,Cluster,Alert-Partitions,Mem-Hrs-Unused,Ratio,Email-Sent\n";
        let rows = "al,c,*,9,0.1,11/02/2026 09:00:00\n\
                    al,c,*,9,0.1,2026-11-02 09:00\n\
                    al,c,*,9\n\
                    bo,c,*,9,0.1,11/02/2026 09:00:00\n\
                    al,c d,*,9,0.1,11/02/2026 09:00:00\n\
                    al,c,*,9,0.1,11/17/2026 09:00:00\n";
        write(dir.path(), "excess_cpu_memory", "al", &format!("{head}{rows}"));
        write(dir.path(), "excess_cpu_memory", "eve", "User,Time\neve,1\n");
        write(dir.path(), "no_such_alert", "al", head);
        let found = read(dir.path(), &instances(""), &TimeZone::UTC, NOW).unwrap();
        assert_eq!(shown(&found), [line("excess-cpu-memory@c", "al", 1_793_610_000, 1, 0)]);
        let said: Vec<String> = found
            .left
            .iter()
            .map(|one| format!("{}:{}: {}", name(&one.file), one.line.unwrap_or(0), one.why))
            .collect();
        for (said, expected) in said.iter().zip([
            "al.csv:3: Email-Sent: expected",
            "al.csv:4: has 4 fields, the first line names 6",
            "al.csv:5: is of user \"bo\"",
            "al.csv:6: \"c d\" is no cluster",
            "al.csv:7: Email-Sent: 11/17/2026 09:00:00 has not come yet",
            "eve.csv:1: its first line does not name",
            "no_such_alert:0: \"no_such_alert\" is no alert",
        ]) {
            assert!(said.starts_with(expected), "{said}");
        }
        assert_eq!(said.len(), 7, "{said:?}");
        let empty = tempfile::tempdir().unwrap();
        assert!(
            read(empty.path(), &[], &TimeZone::UTC, NOW)
                .unwrap_err()
                .contains("violation-logs-path")
        );
    }

    #[test]
    fn every_alert_of_theirs_is_a_rule_of_ours() {
        for violation in [
            "cancel_zero_gpu_jobs",
            "zero_util_gpu_hours",
            "low_gpu_efficiency",
            "too_much_cpu_mem_per_gpu",
            "too_many_cores_per_gpu",
            "gpu_model_too_powerful",
            "multinode_gpu_fragmentation",
            "excessive_time_limits_gpu",
            "zero_cpu_utilization",
            "excess_cpu_memory",
            "low_cpu_efficiency",
            "serial_allocating_multiple",
            "multinode_cpu_fragmentation",
            "excessive_time_limits_cpu",
        ] {
            assert!(rule_of(violation).is_some(), "{violation}");
        }
    }

    #[test]
    fn notices_in_a_row_are_numbered_and_begin_anew_after_a_while() {
        let notice = |user: &str, at: i64| Notice {
            instance: "a".to_owned(),
            rule: "a".to_owned(),
            user: user.to_owned(),
            cluster: "c".to_owned(),
            at: Timestamp::new(at),
            step: 0,
            jobs: Some(1),
            wasted: None,
            message: String::new(),
        };
        let mut all = [notice("x", 0), notice("y", 5), notice("x", 10), notice("x", 21)];
        number(&mut all, std::time::Duration::from_secs(10));
        assert_eq!(all.map(|one| one.step), [1, 1, 2, 1]);
    }
}
