//! What the service says about clusters, on a testbed of its own with two of them: nodes are taken
//! out, slurmd and slurmctld are killed here, which tests beside would feel. `tests/run` brings it
//! up, calls them and ends it.

/// A name in every test's path, for filters.
#[path = "."]
mod cluster {
    mod bank;
    mod control;
    mod dashboard;
    mod nodes;
    mod outage;
    mod queue;
    mod records;
    mod rules;
    mod stage;
    mod truth;
}
