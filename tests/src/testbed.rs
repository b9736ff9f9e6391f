//! The testbed that `deploy/testbed up` brought up.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::OnceLock;

/// Where its parts are.
#[derive(Debug)]
pub struct Testbed {
    values: HashMap<String, String>,
}

impl Testbed {
    /// The one testbed of this machine.
    ///
    /// # Panics
    /// If it is not up.
    pub fn get() -> &'static Self {
        static TESTBED: OnceLock<Testbed> = OnceLock::new();
        TESTBED.get_or_init(|| {
            let dir = std::env::var_os("STEWARD_TESTBED_DIR")
                .map_or_else(|| PathBuf::from("/var/tmp/steward-testbed"), PathBuf::from);
            let path = dir.join("env");
            let text = std::fs::read_to_string(&path).unwrap_or_else(|error| {
                panic!("{}: {error}: bring the testbed up with 'deploy/testbed up'", path.display())
            });
            let values = text
                .lines()
                .filter_map(|line| line.split_once('='))
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .collect();
            Self { values }
        })
    }

    /// A value of its `env` file.
    ///
    /// # Panics
    /// If there is none of that name.
    pub fn value(&self, key: &str) -> &str {
        self.values.get(key).unwrap_or_else(|| panic!("the testbed's env has no {key}"))
    }

    /// Its slurm.conf.
    pub fn slurm_conf(&self) -> &str {
        self.value("SLURM_CONF")
    }

    /// Its Prometheus.
    pub fn prometheus(&self) -> &str {
        self.value("STEWARD_PROMETHEUS_URL")
    }

    /// Its Pushgateway.
    pub fn pushgateway(&self) -> &str {
        self.value("STEWARD_PUSHGATEWAY_URL")
    }

    /// Whether its jobs are in cgroup v1.
    pub fn is_v1(&self) -> bool {
        self.value("STEWARD_CGROUP") == "v1"
    }
}

/// The names of the testbed's users.
pub const USERS: [&str; 3] = ["stw-alice", "stw-bob", "stw-carol"];
