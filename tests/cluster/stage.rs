//! The stage: one testbed, one test at a time, and a service that watches both clusters.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;
use steward_tests::exposition::Exposition;
use steward_tests::service::Service;
use steward_tests::testbed::Testbed;
use steward_tests::{http, shared, wait};

use super::control;
use super::truth::{self, Classes};

/// The two clusters.
pub const CLUSTERS: [&str; 2] = ["steward", "steward2"];

/// Slurm needs some seconds for some changes, and the snapshot comes after them.
pub const PATIENCE: Duration = Duration::from_secs(40);

/// A test on the stage.
pub struct Stage {
    /// The service.
    pub service: Service,
    /// Its files.
    pub dir: tempfile::TempDir,
    _turn: MutexGuard<'static, ()>,
}

/// Takes the stage and starts a service, with `more` settings.
pub fn take(more: &str) -> Stage {
    static TURN: Mutex<()> = Mutex::new(());
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let alone = Testbed::get().value("STEWARD_TESTBED_SLURM_ONLY");
    assert_eq!(alone, "yes", "this testbed may be somebody else's: see tests/run");
    // Who was here before may have failed to put everything back.
    control::repair();
    let dir = shared::directory();
    let archive = dir.path().join("archive");
    // Also for users, whose environment has none.
    let conf = format!("SLURM_CONF={}", Testbed::get().slurm_conf());
    let squeue = ["env", &conf, "squeue"];
    let settings = format!(
        "[slurm]\nclusters = {CLUSTERS:?}\nsqueue = {squeue:?}\n[archive]\ndirectory = {archive:?}\n\
         [exporter]\ninterval = \"1s\"\ntimeout = \"3s\"\nshare = 1.0\n{more}\n"
    );
    let service = Service::start(dir.path(), "one", &settings);
    let stage = Stage { service, dir, _turn: turn };
    for cluster in CLUSTERS {
        stage.answered(cluster, true);
    }
    stage
}

/// The name of a node of the first cluster.
pub fn node(number: u32) -> String {
    format!("{}{number}", Testbed::get().value("STEWARD_TESTBED_NODES"))
}

impl Stage {
    /// Waits until the questions about nodes and jobs of a cluster are answered, or are not.
    pub fn answered(&self, cluster: &str, are: bool) {
        let expected = f64::from(u8::from(are));
        wait::until_true(&format!("{cluster}: success {expected}"), PATIENCE, || {
            let page = self.service.metrics();
            ["nodes", "jobs"].iter().all(|question| {
                let labels = [("cluster", cluster), ("question", question)];
                page.value("steward_snapshot_success", &labels) == Some(expected)
            })
        });
    }

    /// What `/api/v1/clusters…` says with that status.
    pub fn api(&self, path: &str) -> (u16, Value) {
        let answer = http::get(&format!("{}/api/v1/clusters{path}", self.service.url())).unwrap();
        (answer.status().as_u16(), answer.json().unwrap())
    }

    /// Waits until all that is exported about both clusters is what sinfo and squeue say; that what
    /// there is adds up is held against every page meanwhile.
    pub fn agrees(&self, when: &str) {
        let deadline = Instant::now() + PATIENCE;
        let last = loop {
            match self.compared() {
                Ok(()) => return,
                Err(difference) if Instant::now() > deadline => break difference,
                Err(_) => std::thread::sleep(Duration::from_millis(250)),
            }
        };
        panic!("{when}: {last}");
    }

    fn compared(&self) -> Result<(), String> {
        for cluster in CLUSTERS {
            let (classes, cpus) = (truth::classes(cluster), truth::cpus(cluster));
            let (jobs, reasons) = truth::queue(cluster);
            let page = self.service.metrics();
            adds_up(&page, cluster);
            same("classes", cluster, &classes, &exported(&page, cluster))?;
            let words = ["alloc", "idle", "other", "total"];
            let own = words.map(|word| {
                let value = page.value(&format!("slurm_cpus_{word}"), &[("cluster", cluster)]);
                whole(value.unwrap_or(-1.0))
            });
            same("slurm_cpus_", cluster, &cpus, &own)?;
            same("jobs", cluster, &jobs, &by(&page, "steward_jobs", cluster, "state"))?;
            let own = by(&page, "steward_jobs_pending", cluster, "reason");
            same("reasons", cluster, &reasons, &own)?;
        }
        Ok(())
    }
}

fn same<T: PartialEq + std::fmt::Debug>(
    what: &str,
    cluster: &str,
    slurm: &T,
    own: &T,
) -> Result<(), String> {
    if slurm == own {
        return Ok(());
    }
    Err(format!("{what} of {cluster}:\n  Slurm's text {slurm:?}\n  the service {own:?}"))
}

fn whole(value: f64) -> u64 {
    assert!(value >= 0.0 && value.fract() == 0.0, "{value}");
    value as u64
}

/// What is above 0, by a label.
fn by(page: &Exposition, name: &str, cluster: &str, label: &str) -> BTreeMap<String, u64> {
    let samples = page.all(name, &[("cluster", cluster)]).into_iter();
    let pairs = samples.map(|sample| (sample.labels[label].clone(), whole(sample.value)));
    pairs.filter(|(_, count)| *count > 0).collect()
}

/// Every resource of a cluster by class and cause, as the service exports it.
pub fn exported(page: &Exposition, cluster: &str) -> Classes {
    let mut classes = Classes::new();
    for (name, resource) in [
        ("steward_cluster_cpus", "cpus"),
        ("steward_cluster_memory_bytes", "memory"),
        ("steward_cluster_gpus", "gpus"),
    ] {
        for sample in page.all(name, &[("cluster", cluster)]) {
            let resource = match sample.labels.get("type") {
                Some(model) => format!("{resource} {model}"),
                None => resource.to_owned(),
            };
            let key = (resource, sample.labels["class"].clone(), sample.labels["cause"].clone());
            let amount = whole(sample.value);
            if amount > 0 {
                assert!(classes.insert(key, amount).is_none(), "twice: {sample:?}");
            }
        }
    }
    classes
}

/// The nodes of the testbed have what they have, whatever happens to them.
fn adds_up(page: &Exposition, cluster: &str) {
    let mut sums: BTreeMap<String, u64> = BTreeMap::new();
    for ((resource, _, _), amount) in exported(page, cluster) {
        *sums.entry(resource).or_default() += amount;
    }
    let (nodes, gpus) = if cluster == CLUSTERS[0] { (4, ("fake", 4)) } else { (2, ("other", 1)) };
    let expected = [
        ("cpus".to_owned(), nodes * 8),
        (format!("gpus {}", gpus.0), gpus.1),
        ("memory".to_owned(), (nodes * 4000) << 20),
    ];
    assert_eq!(sums, BTreeMap::from(expected), "{cluster}: classes must sum to all that there is");
    let samples = page.all("steward_node_state", &[("cluster", cluster)]);
    assert_eq!(samples.len() as u64, nodes, "{cluster}: each node is in one base state");
}
