//! Sums by state, and what each state says about an end.

use std::collections::BTreeMap;

use super::cause::Cause;
use super::part::Run;
use super::report::StateLine;
use crate::intern::{Name, Names};
use crate::slurm::state::JobState;

#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    cause: Option<Cause>,
    jobs: u64,
    cpu: f64,
    gpu: f64,
}

/// The sums of each state, at the place of its name.
#[derive(Debug, Default)]
pub(super) struct States {
    sums: Vec<Sum>,
}

impl States {
    /// What the end of a run in this state is put down to.
    pub(super) fn cause(&mut self, state: Name, names: &Names) -> Cause {
        if let Some(Sum { cause: Some(cause), .. }) = self.sums.get(state.index()) {
            return *cause;
        }
        if self.sums.len() <= state.index() {
            self.sums.resize(state.index() + 1, Sum::default());
        }
        let cause = Cause::of(&JobState::from(names.text(state)));
        if let Some(sum) = self.sums.get_mut(state.index()) {
            sum.cause = Some(cause);
        }
        cause
    }

    /// Counts a run whose cause was asked for before.
    pub(super) fn add(&mut self, state: Name, run: &Run) {
        if let Some(sum) = self.sums.get_mut(state.index()) {
            sum.jobs += 1;
            sum.cpu += run.took.cpu.held;
            sum.gpu += run.took.gpu.map_or(0.0, |gpu| gpu.held);
        }
    }

    /// Most runs first.
    pub(super) fn lines(&self, names: &Names, all: u64) -> Vec<StateLine> {
        let mut lines: BTreeMap<String, StateLine> = BTreeMap::new();
        for (name, text) in names.iter() {
            let Some(sum) = self.sums.get(name.index()).filter(|sum| sum.jobs > 0) else {
                continue;
            };
            let state = JobState::from(text).name().to_owned();
            let line = lines.entry(state.clone()).or_insert_with(|| StateLine {
                state,
                jobs: 0,
                share: 0.0,
                cpu_hours: 0.0,
                gpu_hours: 0.0,
            });
            line.jobs += sum.jobs;
            line.share = line.jobs as f64 / all.max(1) as f64;
            line.cpu_hours += sum.cpu;
            line.gpu_hours += sum.gpu;
        }
        let mut lines: Vec<StateLine> = lines.into_values().collect();
        lines.sort_by_key(|line| std::cmp::Reverse(line.jobs));
        lines
    }
}
