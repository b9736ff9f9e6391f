//! `steward-agent once`: one sample to standard output.

use std::time::Duration;

use anyhow::bail;

use crate::Rounds;
use crate::config::Config;
use crate::output::text;
use crate::scan::{Focus, Scanner};

/// Scans twice, `window` apart, so that rates have something to stand on, and gives the second as
/// Prometheus text.
///
/// # Errors
/// If there are no cgroups or the cluster's name is not known.
pub fn run(config: &Config, window: Duration) -> anyhow::Result<String> {
    config.check()?;
    let mut rounds = Rounds::new(config, Scanner::new(config.clone())?, None);
    rounds.scan(Focus::All);
    std::thread::sleep(window);
    let snapshot = rounds.scan(Focus::All);
    if snapshot.nodes.is_empty() {
        bail!(
            "the cluster's name is not known: give --cluster NAME, set 'cluster' in the configuration, or point SLURM_CONF at slurm.conf"
        );
    }
    Ok(text::write(&snapshot.samples())?)
}
