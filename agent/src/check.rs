//! `steward-agent check`: what the agent can and cannot see on this node, in plain words.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt;
use std::io::ErrorKind;
use std::net::TcpListener;
use std::path::Path;
use std::time::Duration;

use serde::Serialize;
use steward_common::causes::with_causes;

use crate::config::Config;
use crate::kernel::cgroup::Hierarchy;
use crate::kernel::error::Errors;
use crate::node::JobSample;
use crate::scan::{Focus, Scanner};

/// How well one thing stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Grade {
    /// As it should be.
    Ok,
    /// Worth knowing; nothing is wrong.
    Note,
    /// Something will be missing.
    Trouble,
}

/// One finding.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    /// What was looked at.
    pub subject: &'static str,
    /// How it stands.
    pub grade: Grade,
    /// What was found and, if need be, what to do.
    pub text: String,
}

/// All findings.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// In the order in which they build on one another.
    pub lines: Vec<Line>,
}

impl Report {
    fn add(&mut self, subject: &'static str, grade: Grade, text: impl Into<String>) {
        self.lines.push(Line { subject, grade, text: text.into() });
    }

    /// Whether anything needs an administrator.
    #[must_use]
    pub fn has_trouble(&self) -> bool {
        self.lines.iter().any(|line| line.grade == Grade::Trouble)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.lines {
            let mark = match line.grade {
                Grade::Ok => "ok     ",
                Grade::Note => "note   ",
                Grade::Trouble => "TROUBLE",
            };
            writeln!(f, "{mark}  {:<11} {}", line.subject, line.text)?;
        }
        Ok(())
    }
}

/// Looks at everything that the agent needs.
pub async fn run(config: &Config) -> Report {
    let mut report = Report::default();
    match config.check() {
        Ok(()) => report.add("settings", Grade::Ok, format!("a scan every {}", config.interval)),
        Err(error) => report.add("settings", Grade::Trouble, error.to_string()),
    }
    match Scanner::new(config.clone()) {
        Ok(mut scanner) => {
            hierarchy(scanner.hierarchy(), config, &mut report);
            jobs(&mut scanner, &mut report);
        }
        Err(error) => report.add("cgroups", Grade::Trouble, error.to_string()),
    }
    privileges(&config.paths.proc, &mut report);
    outputs(config, &mut report).await;
    report
}

fn hierarchy(hierarchy: &Hierarchy, config: &Config, report: &mut Report) {
    let root = config.paths.cgroup.display();
    match hierarchy {
        Hierarchy::V2(_) => report.add("cgroups", Grade::Ok, format!("version 2 at {root}")),
        Hierarchy::V1(v1) => {
            let mounted: Vec<_> = v1.controllers().collect();
            report.add(
                "cgroups",
                Grade::Ok,
                format!("version 1 at {root}: {}", mounted.join(", ")),
            );
            for (needed, why) in [("cpuacct", "CPU time"), ("memory", "memory")] {
                if !mounted.contains(&needed) {
                    let text = format!("controller {needed} is not mounted: no {why} of jobs");
                    report.add("cgroups", Grade::Trouble, text);
                }
            }
        }
    }
}

/// Whether the cgroups of a job say nothing of what it uses.
fn is_blind(job: &JobSample) -> bool {
    !job.ended && (job.cpu.total.is_none() || job.memory.usage.is_none())
}

fn jobs(scanner: &mut Scanner, report: &mut Report) {
    let mut scan = scanner.scan(Focus::All);
    if scan.nodes.iter().any(|node| node.jobs.iter().any(is_blind)) {
        // The directories of a job that begins or ends are made one after the other.
        std::thread::sleep(Duration::from_secs(1));
        scan = scanner.scan(Focus::All);
    }
    let host = scanner.host();
    match &host.cluster {
        Some(cluster) => report.add("cluster", Grade::Ok, cluster.to_string()),
        None => report.add(
            "cluster",
            Grade::Trouble,
            "not known, so nothing is exported: set 'cluster' or paths.slurm_conf",
        ),
    }
    match (&host.slurm_conf, &host.trouble) {
        (_, Some(trouble)) => report.add("slurm.conf", Grade::Trouble, trouble.clone()),
        (Some(path), None) => report.add("slurm.conf", Grade::Ok, path.display().to_string()),
        (None, None) => report.add(
            "slurm.conf",
            Grade::Note,
            "none found; it is not needed if 'cluster' is set",
        ),
    }
    let scopes = scanner.hierarchy().scopes();
    if scopes.is_empty() {
        report.add(
            "scopes",
            Grade::Note,
            "no Slurm scope yet: slurmd makes it with the first job (or is not running)",
        );
    }
    let mut named: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for scope in scopes {
        let text = |part: Option<&OsStr>| part.map(|part| part.to_string_lossy().into_owned());
        let name = text(scope.file_name()).unwrap_or_default();
        named.entry(name).or_default().extend(text(scope.parent().and_then(Path::file_name)));
    }
    for (name, parents) in named {
        report.add("scopes", Grade::Ok, format!("{name} in {}", parents.join(", ")));
    }
    namespace(scan.nodes.iter().any(|node| node.leftovers > 0), report);
    for node in &scan.nodes {
        let running = node.jobs.iter().filter(|job| !job.ended);
        let (mut count, mut processes, mut blind) = (0_u64, 0, 0);
        for job in running {
            count += 1;
            processes += job.processes.as_ref().map_or(0, |processes| processes.count);
            blind += u64::from(is_blind(job));
        }
        let (steps, tasks) = scanner.steps_and_tasks(&node.name);
        let text = format!(
            "{}: jobs {count}, step directories {steps}, task directories {tasks}, processes {processes}",
            node.name
        );
        report.add("node", Grade::Ok, text);
        if blind > 0 {
            report.add("node", Grade::Trouble, format!(
                "{}: {blind} jobs without CPU or memory figures: set JobAcctGatherType=jobacct_gather/cgroup and ConstrainRAMSpace=yes",
                node.name));
        }
        if node.leftovers > 0 {
            let text = format!(
                "{}: {} job directories without a job are left behind",
                node.name, node.leftovers
            );
            report.add("node", Grade::Note, text);
        }
    }
    complaints(&scan.errors, report);
}

/// The first pid namespace has this number on every kernel.
const HOST_NAMESPACE: &str = "pid:[4026531836]";

/// In a container with slurmd the agent sees all it needs; beside one, job directories look empty.
fn namespace(leftovers: bool, report: &mut Report) {
    let own = std::fs::read_link("/proc/self/ns/pid");
    if own.is_ok_and(|own| own == Path::new(HOST_NAMESPACE)) {
        return;
    }
    let grade = if leftovers { Grade::Trouble } else { Grade::Note };
    report.add(
        "namespace",
        grade,
        "in another pid namespace than the host's: right only if slurmd runs in it too, else jobs look empty",
    );
}

fn complaints(errors: &Errors, report: &mut Report) {
    for error in errors.worth_logging() {
        report.add("reading", Grade::Trouble, error.to_string());
    }
}

/// Other users' I/O and descriptors need the first; directories closed to others need the second.
const CAPABILITIES: [(&str, u32); 2] = [("CAP_SYS_PTRACE", 19), ("CAP_DAC_READ_SEARCH", 2)];

fn privileges(proc_root: &Path, report: &mut Report) {
    let path = proc_root.join("self/status");
    let held = std::fs::read_to_string(&path).ok().and_then(|text| capabilities(&text));
    let Some(held) = held else {
        let text = format!("{}: cannot tell which capabilities the agent has", path.display());
        return report.add("privileges", Grade::Trouble, text);
    };
    let missing: Vec<&str> = CAPABILITIES
        .into_iter()
        .filter(|(_, bit)| held & (1 << bit) == 0)
        .map(|(name, _)| name)
        .collect();
    if missing.is_empty() {
        report.add("privileges", Grade::Ok, "processes of all users can be read");
    } else {
        let text = format!(
            "{} missing: I/O and open files of other users' jobs stay unknown; run as root or grant them",
            missing.join(" and ")
        );
        report.add("privileges", Grade::Trouble, text);
    }
}

fn capabilities(status: &str) -> Option<u64> {
    let hex = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
    u64::from_str_radix(hex.trim(), 16).ok()
}

async fn outputs(config: &Config, report: &mut Report) {
    let listen = config.scrape.listen;
    match TcpListener::bind(listen) {
        _ if !config.scrape.enabled => report.add("scrape", Grade::Note, "off"),
        Ok(_) => report.add("scrape", Grade::Ok, format!("http://{listen}/metrics")),
        Err(error) if error.kind() == ErrorKind::AddrInUse => {
            let text = format!("{listen} is in use: by an agent that runs already?");
            report.add("scrape", Grade::Note, text);
        }
        Err(error) => report.add("scrape", Grade::Trouble, format!("{listen}: {error}")),
    }
    let Some(gateway) = &config.push.gateway else {
        let (grade, text) = if config.scrape.enabled {
            (Grade::Note, "off")
        } else {
            (Grade::Trouble, "off, and so is the listener: nobody will see anything")
        };
        report.add("push", grade, text);
        return;
    };
    match ready(gateway, config.push.timeout.0).await {
        Ok(()) => report.add("push", Grade::Ok, format!("{gateway} answers")),
        Err(why) => report.add("push", Grade::Trouble, format!("{gateway}: {why}")),
    }
}

async fn ready(gateway: &str, timeout: Duration) -> Result<(), String> {
    let client = reqwest::Client::builder()
        .timeout(timeout)
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .map_err(|error| error.to_string())?;
    // Only a Pushgateway has this page.
    let url = format!("{}/api/v1/status", gateway.trim_end_matches('/'));
    let answer = client.get(&url).send().await.map_err(|error| with_causes(&error))?;
    match answer.status() {
        status if status.is_success() => Ok(()),
        status => Err(format!("{status} for {url}: is this a Pushgateway?")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_are_read_from_hex() {
        let status = "Name:\tx\nCapEff:\t0000000000080004\nSeccomp:\t0\n";
        let held = capabilities(status).unwrap();
        assert!(CAPABILITIES.iter().all(|(_, bit)| held & (1 << bit) != 0));
        assert_eq!(capabilities("CapEff:\t0000000000000000\n"), Some(0));
        assert_eq!(capabilities("Name:\tx\n"), None);
    }
}
