//! sacct: whether it is there, what it knows, and what it says.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use steward_common::id::ClusterName;
use steward_common::slurm::sacct::{Field, Layout};
use steward_common::time;
use steward_common::window::Window;

use super::{CALL, Finding, Patient, good, in_short, note, trouble};
use crate::collect::{CollectError, site};
use crate::source::slurm::command::CommandError;
use crate::source::slurm::lines::Piece;
use crate::source::slurm::sacct::{Failure, Sacct};

/// How far back it is asked for jobs.
const BACK: Duration = Duration::from_secs(3600);

/// Asks sacct as a collection would, for a short time.
pub async fn check(patient: Arc<Patient>) -> Vec<Finding> {
    let work = tokio::task::spawn_blocking(move || {
        let mut found = Vec::new();
        let clusters = &patient.config.slurm.clusters;
        if clusters.is_empty() {
            ask(&patient, None, &mut found);
        }
        for cluster in clusters {
            if !ask(&patient, Some(cluster.clone()), &mut found) {
                break;
            }
        }
        found
    });
    work.await.unwrap_or_else(|error| vec![trouble(error.to_string(), "report this")])
}

/// One cluster; false if sacct itself does not work.
fn ask(patient: &Patient, cluster: Option<ClusterName>, found: &mut Vec<Finding>) -> bool {
    let config = &patient.config.slurm;
    let stop = Arc::clone(&patient.stop);
    let sacct = Sacct::new(&config.sacct, cluster.clone(), CALL, stop);
    let layout = match sacct.version().and_then(|version| Ok((version, sacct.fields()?))) {
        Ok((version, layout)) => {
            // Several clusters have one sacct.
            if found.is_empty() {
                found.push(fields(&version, &layout));
            }
            layout
        }
        Err(error) => {
            found.push(trouble(in_short(&error), advice(&error)));
            return false;
        }
    };
    if layout.place(Field::JobId).is_none() || layout.place(Field::State).is_none() {
        return false;
    }
    let of = cluster.as_ref().map_or(String::new(), |cluster| format!("{cluster}: "));
    found.push(match fetch(&sacct, &layout) {
        Ok((0, 0)) => match cluster.map(|name| known(patient, &name)).transpose() {
            Ok(_) => good(format!("{of}no job waited, ran or ended in the last hour")),
            Err(error) => {
                trouble(error.to_string(), "write its name as `sacctmgr show cluster` does")
            }
        },
        Ok((whole, 0)) => good(format!("{of}{whole} jobs waited, ran or ended in the last hour")),
        Ok((whole, broken)) => note(
            format!(
                "{of}{} jobs in the last hour, {broken} of them cannot be cut into fields",
                whole + broken
            ),
            "they are asked for again one by one when they are collected; nothing is lost",
        ),
        Err(error) => {
            let advice = advice(&error);
            found.push(trouble(format!("{of}{}", in_short(&error)), advice));
            return !matches!(error, CommandError::TooSlow { .. });
        }
    });
    true
}

/// Whether slurmdbd knows the cluster.
fn known(patient: &Patient, cluster: &ClusterName) -> Result<(), CollectError> {
    site::is_known(&patient.config.slurm.sacctmgr, cluster.as_str(), &patient.stop)
}

fn fetch(sacct: &Sacct, layout: &Layout) -> Result<(u64, u64), CommandError> {
    let now = time::Timestamp::new(Timestamp::now().as_second());
    let Some(window) = Window::new(now.before(BACK), now) else { return Ok((0, 0)) };
    let (mut whole, mut broken) = (0, 0);
    let end = sacct.jobs::<std::convert::Infallible>(layout, window, |piece| {
        match piece {
            Piece::Whole(_) => whole += 1,
            Piece::Broken { .. } | Piece::Stray { .. } => broken += 1,
        }
        Ok(())
    });
    match end {
        Ok(()) => Ok((whole, broken)),
        Err(Failure::Call(error)) => Err(error),
        Err(Failure::Visit(never)) => match never {},
    }
}

fn advice(error: &CommandError) -> &'static str {
    match error {
        CommandError::NotStarted { .. } => {
            "install Slurm's client commands here, or name the command in slurm.sacct of \
             steward.toml"
        }
        CommandError::TooSlow { .. } => {
            "see that slurmdbd answers (`sacct -n -S now`) and that slurm.sacct names the right \
             command"
        }
        CommandError::Failed { .. } => {
            "run the same by hand as this user; see that slurm.conf is found (SLURM_CONF), munge \
             runs and slurmdbd answers"
        }
        CommandError::Unreadable { .. } | CommandError::Stopped => "try again",
    }
}

/// What the archive lacks because this Slurm does not know a field.
fn costs(field: Field) -> Option<&'static str> {
    Some(match field {
        // Runs are told apart by when they were submitted.
        Field::Restarts => return None,
        Field::TresUsageInTot | Field::TresUsageInMax => "memory of jobs with several tasks",
        Field::TresUsageOutTot => "bytes written",
        Field::AdminComment => "what other tools noted in admin_comment",
        Field::SubmitLine => "how jobs were submitted",
        Field::Energy => "energy",
        Field::TotalCpu => "CPU time, and with it efficiency",
        Field::MaxRss => "memory used",
        Field::AllocTres | Field::ReqTres => "GPUs and billing",
        Field::Timelimit => "time limits",
        field => field.name(),
    })
}

fn fields(version: &str, layout: &Layout) -> Finding {
    let lacking = Field::ALL.iter().copied().filter(|field| layout.place(*field).is_none());
    let lacking: Vec<Field> = lacking.collect();
    if layout.fields().is_empty() {
        return trouble(
            format!("{version}: --helpformat names no field"),
            "slurm.sacct of steward.toml must name a sacct",
        );
    }
    let names =
        |fields: &[Field]| fields.iter().map(|one| one.name()).collect::<Vec<_>>().join(", ");
    let costs: Vec<&str> = lacking.iter().filter_map(|field| costs(*field)).collect();
    match (lacking.as_slice(), costs.as_slice()) {
        ([], _) => good(format!("{version}, which knows all fields")),
        (lacking, []) => {
            good(format!("{version}, which knows all fields that matter (not {})", names(lacking)))
        }
        (lacking, costs) => note(
            format!("{version} does not know {}", names(lacking)),
            format!("the archive will lack {}; a newer Slurm has it", costs.join(", ")),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Mark;

    #[test]
    fn what_a_slurm_does_not_know_is_said_with_what_it_costs() {
        let all = Layout::new(|field| field != Field::Restarts);
        let finding = fields("slurm 22.05.8", &all);
        assert_eq!(finding.mark, Mark::Good);
        assert!(finding.text.contains("not Restarts"), "{finding:?}");
        let old = Layout::new(|field| !matches!(field, Field::SubmitLine | Field::Energy));
        let finding = fields("slurm 20.02", &old);
        assert_eq!(finding.mark, Mark::Note);
        assert!(finding.advice.unwrap().contains("lack energy, how jobs were submitted"));
        let none = fields("GNU sleep", &Layout::of_help(""));
        assert_eq!(none.mark, Mark::Trouble);
    }
}
