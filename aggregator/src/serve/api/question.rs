//! What is asked for behind the `?`.

use steward_common::cluster::CurrentJob;
use steward_common::slurm::state::JobState;

use super::listing::Shape;
use super::refusal::Refusal;
use crate::current::{JobRow, state_word, state_words};

/// Which rows, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// How they are written.
    pub shape: Shape,
    /// Only of these users.
    pub users: Vec<String>,
    /// Only charged to these accounts.
    pub accounts: Vec<String>,
    /// Only in one of these partitions.
    pub partitions: Vec<String>,
    /// Only in these states: as they were given, until [`Asked::of_jobs`] or [`Asked::of_nodes`]
    /// has made Slurm's own names of them.
    pub states: Vec<String>,
}

impl Asked {
    /// Reads `user=alice&user=bob&state=RUNNING&format=ndjson`; of these keys `known` may be there.
    ///
    /// # Errors
    /// If there is anything else.
    pub fn parse(query: Option<&str>, known: &[&str]) -> Result<Asked, Refusal> {
        let mut asked = Asked::default();
        // An address is needed to take the pairs apart; which one does not matter.
        let address = format!("http://steward/?{}", query.unwrap_or_default());
        let address = reqwest::Url::parse(&address)
            .map_err(|error| Refusal::bad(format!("the question cannot be read: {error}")))?;
        for (key, value) in address.query_pairs() {
            if !known.contains(&&*key) {
                let known = known.join(", ");
                return Err(Refusal::bad(format!("{key:?} is not known here; known: {known}")));
            }
            let names = || value.split(',').filter(|name| !name.is_empty()).map(str::to_owned);
            match &*key {
                "format" => asked.shape = shape(&value)?,
                "user" => asked.users.extend(names()),
                "account" => asked.accounts.extend(names()),
                "partition" => asked.partitions.extend(names()),
                _ => asked.states.extend(names()),
            }
        }
        Ok(asked)
    }

    /// Reads the question about a single thing, of which nothing can be chosen.
    ///
    /// # Errors
    /// If there is anything but `format=json`: one object has no rows to be written a line each, and
    /// whoever reads lines would take it for a row.
    pub fn one(query: Option<&str>) -> Result<(), Refusal> {
        match Asked::parse(query, &["format"])?.shape {
            Shape::Object => Ok(()),
            Shape::Lines => Err(Refusal::bad(
                "format=ndjson is for lists of jobs or nodes; this is one JSON object: leave it out",
            )),
        }
    }

    /// The same, with states of jobs by their long names. A state of a newer Slurm is known by the
    /// jobs that are in it.
    ///
    /// # Errors
    /// If Slurm has no such state; an empty list would look as if no job were in it.
    pub fn of_jobs(mut self, queue: &[CurrentJob]) -> Result<Asked, Refusal> {
        for state in &mut self.states {
            let newer = || queue.iter().find(|job| job.state.name().eq_ignore_ascii_case(state));
            let known = JobState::named(state).or_else(|| newer().map(|job| job.state.clone()));
            let known = known.ok_or_else(|| no_state(state, "jobs", &JobState::names()))?;
            known.name().clone_into(state);
        }
        Ok(self)
    }

    /// The same, with base states and flags of nodes by Slurm's words for them.
    ///
    /// # Errors
    /// If Slurm has no such word.
    pub fn of_nodes(mut self) -> Result<Asked, Refusal> {
        for state in &mut self.states {
            let known = state_word(state);
            let known = known.ok_or_else(|| no_state(state, "nodes", &state_words()))?;
            known.clone_into(state);
        }
        Ok(self)
    }

    /// Whether a job is asked for.
    #[must_use]
    pub fn wants(&self, job: &JobRow) -> bool {
        let one_of =
            |names: &[String], own: &str| names.is_empty() || names.iter().any(|name| name == own);
        one_of(&self.users, &job.user)
            && one_of(&self.accounts, &job.account)
            && one_of(&self.states, &job.state)
            && (self.partitions.is_empty()
                || job.partition.split(',').any(|own| one_of(&self.partitions, own)))
    }
}

fn no_state(text: &str, what: &str, known: &str) -> Refusal {
    Refusal::bad(format!("state: {text:?} is no state of {what} in Slurm; there are {known}"))
}

fn shape(text: &str) -> Result<Shape, Refusal> {
    match text {
        "json" => Ok(Shape::Object),
        "ndjson" => Ok(Shape::Lines),
        _ => Err(Refusal::bad(format!("format is json or ndjson, not {text:?}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_read_and_what_is_not_known_refused() {
        let known = ["format", "user", "state", "partition", "account"];
        let asked =
            Asked::parse(Some("user=alice&user=b%20b&state=running,pending&format=ndjson"), &known)
                .unwrap();
        assert_eq!(asked.users, ["alice", "b b"]);
        assert_eq!(asked.states, ["running", "pending"]);
        assert_eq!(asked.clone().of_jobs(&[]).unwrap().states, ["RUNNING", "PENDING"]);
        assert!(asked.clone().of_nodes().is_err());
        assert_eq!(asked.shape, Shape::Lines);
        assert_eq!(Asked::parse(None, &known).unwrap(), Asked::default());
        for query in ["format=xml", "usr=alice", "=", "%ff=1"] {
            assert!(Asked::parse(Some(query), &known).is_err(), "{query}");
        }
    }

    #[test]
    fn a_job_that_waits_in_several_partitions_is_in_each() {
        let job = JobRow { partition: "cpu,gpu".to_owned(), ..JobRow::default() };
        let of =
            |partition: &str| Asked { partitions: vec![partition.to_owned()], ..Asked::default() };
        assert!(of("gpu").wants(&job) && of("cpu").wants(&job) && !of("c").wants(&job));
    }
}
