//! `specialized-nodes`.

use std::collections::HashSet;

use crate::id::NodeName;
use crate::intern::Name;
use crate::unit::Bytes;

use super::facts::Job;
use super::finding::{Audience, Figures, Hit, Value};
use super::measure::{self, Missing};
use super::option::{Share, options};
use super::portfolio::{Portfolio, Scope};
use super::search::{Found, search};
use super::usage::Idle;
use super::{Need, Part, Rule, RuleId, Subject, Verdict};

/// What is special about nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Special {
    /// They have more memory than ordinary nodes, which have this much.
    Memory {
        /// Memory of an ordinary node.
        ordinary: Bytes,
    },
    /// They have GPUs.
    Gpus,
    /// A licence is bound to them.
    Licence(String),
}

/// Nodes that are special in the same way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeSet {
    /// What people call them.
    pub name: String,
    /// The nodes.
    pub nodes: Vec<NodeName>,
    /// What they have.
    pub special: Special,
}

options! {
    /// Bounds of [`SpecializedNodes`].
    Bounds {
        /// CPU-hours of such jobs from which on the user is told.
        cpu_hours: f64 = 0.0;
        /// Share of a job that must have been measured.
        coverage: Share = Share::per_cent(80);
        /// Share of a user's CPU-hours that must have been measured to say that all is well.
        hours_coverage: Share = Share::per_cent(50);
    }
}

/// Jobs that ran on special nodes and did not need them. Without [`NodeSet`]s it finds nothing.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SpecializedNodes {
    /// The special nodes.
    pub sets: Vec<NodeSet>,
    /// Its other options.
    pub bounds: Bounds,
}

/// The rule with its defaults.
pub(super) fn rule() -> Box<dyn Rule> {
    Box::new(SpecializedNodes::default())
}

impl super::option::Options for SpecializedNodes {
    fn list(&self) -> Vec<super::option::Shown> {
        self.bounds.list()
    }

    fn set(&mut self, name: &str, value: super::Setting) -> Result<(), super::SetError> {
        self.bounds.set(name, value)
    }
}

impl Rule for SpecializedNodes {
    fn id(&self) -> RuleId {
        RuleId("specialized-nodes")
    }

    fn doc(&self) -> &'static str {
        "Jobs all of whose nodes are in a named set of special nodes (more memory, GPUs, a licence) \
         and that did not use what is special: the most memory on a node would have fitted into an \
         ordinary one, no GPU was used, no such licence was asked for.\n\
         Jobs that need these nodes wait for them.\n\
         Name another partition, or leave the choice to Slurm."
    }

    fn needs(&self) -> &'static [Need] {
        &[Need::Accounting, Need::ByNode, Need::Gpus]
    }

    fn scope(&self) -> Scope {
        Scope::ended(10)
    }

    fn check(&self, portfolio: &Portfolio<'_>) -> Vec<(Subject, Verdict)> {
        let names = &portfolio.facts().names;
        let known = |set: &NodeSet| -> HashSet<Name> {
            set.nodes.iter().filter_map(|node| names.find(node.as_str())).collect()
        };
        let sets: Vec<(&NodeSet, HashSet<Name>)> =
            self.sets.iter().map(|set| (set, known(set))).collect();
        let judge = |(user, jobs): (Name, &[&Job])| {
            let subject = Subject::User { user, part: Part::All };
            (subject, self.judge(portfolio, &sets, jobs))
        };
        portfolio.users().map(judge).collect()
    }
}

impl SpecializedNodes {
    fn judge(
        &self,
        portfolio: &Portfolio<'_>,
        sets: &[(&NodeSet, HashSet<Name>)],
        jobs: &[&Job],
    ) -> Verdict {
        // The place of a set stands for its name, which is no name of the facts.
        let of = |job: &Job| {
            let nodes = portfolio.facts().nodes_of(job);
            let place =
                sets.iter().position(|(_, set)| nodes.iter().all(|node| set.contains(node)));
            place.filter(|_| !nodes.is_empty())
        };
        let haul = search(
            jobs.iter(),
            |job| of(job).and_then(|_| job.elapsed.filter(|e| *e > 0)).map(|_| job.cpu_hours()),
            |job| {
                let Some((place, (set, _))) = of(job).and_then(|at| Some((at, sets.get(at)?)))
                else {
                    return Ok(None);
                };
                self.look(portfolio, place, set, job)
            },
        );
        if haul.hits.is_empty() || haul.amount < self.bounds.cpu_hours {
            return haul.without_finding(self.bounds.hours_coverage);
        }
        let figures = Figures::default().with("cpu_hours", haul.amount);
        Verdict::Finding(haul.finding(Audience::User, figures))
    }

    fn look(
        &self,
        portfolio: &Portfolio<'_>,
        place: usize,
        set: &NodeSet,
        job: &Job,
    ) -> Result<Option<Found>, Missing> {
        let coverage = self.bounds.coverage;
        let figures = Figures::default().with("set", place).with("hours", job.hours());
        let figures = match &set.special {
            Special::Memory { ordinary } => {
                let used = measure::memory_per_node(job, coverage)?;
                if used >= *ordinary {
                    return Ok(None);
                }
                figures.with("memory_used_per_node", Value::Bytes(used))
            }
            Special::Gpus => {
                if job.gpus.ok_or(Missing::Held)? > 0 && uses_gpus(job, coverage)? {
                    return Ok(None);
                }
                figures.with("gpus", job.gpu_count())
            }
            Special::Licence(licence) => {
                let asked = portfolio.facts().names.text(job.licences.ok_or(Missing::Unmeasured)?);
                if has_licence(asked, licence) {
                    return Ok(None);
                }
                figures
            }
        };
        Ok(Some(Found { amount: job.cpu_hours(), hit: Hit::new(job, None, figures) }))
    }
}

fn uses_gpus(job: &Job, coverage: Share) -> Result<bool, Missing> {
    for gpu in measure::gpus(job, coverage)? {
        if gpu.utilisation.ok_or(Missing::Unmeasured)?.idle() == Idle::No {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether a list such as `matlab:2,ansys@server:1` names the licence.
fn has_licence(list: &str, licence: &str) -> bool {
    list.split([',', ';', '|']).any(|item| item.split([':', '@', '=']).next() == Some(licence))
}

/// The set that the figure `set` of a hit stands for.
#[must_use]
pub fn set_of<'a>(rule: &'a SpecializedNodes, figures: &Figures) -> Option<&'a NodeSet> {
    let Value::Count(place) = figures.get("set")? else { return None };
    rule.sets.get(usize::try_from(place).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::Why;
    use crate::rule::sample::{Draft, World, gib, job, near};

    fn rule(special: Special) -> SpecializedNodes {
        let nodes = ["n1", "n2"].map(|node| NodeName::new(node).unwrap()).to_vec();
        let set = NodeSet { name: "special".into(), nodes, special };
        SpecializedNodes { sets: vec![set], bounds: Bounds::default() }
    }

    fn memory() -> SpecializedNodes {
        rule(Special::Memory { ordinary: gib(190.0) })
    }

    fn found(rule: &SpecializedNodes, draft: Draft) -> usize {
        World::new([draft]).found(rule).len()
    }

    #[test]
    fn memory_of_a_node_just_below_equal_and_just_above() {
        let used = |used| {
            let draft = job("a").held("n[1-2]", 2, 0).by_node(&[(9.0, 1.0), (9.0, used)]);
            found(&memory(), draft.with(|job| job.gib = 500.0))
        };
        assert_eq!([189.9, 190.0, 190.1].map(used), [1, 0, 0]);
        let single = |used| found(&memory(), job("a").memory(used, 500.0));
        assert_eq!([189.9, 190.0].map(single), [1, 0], "Slurm's figure will do for one node");
    }

    #[test]
    fn a_node_beside_the_set_is_no_choice_of_the_set() {
        let draft = job("a").held("n[2-3]", 2, 0).by_node(&[(9.0, 1.0); 2]);
        let verdict = World::new([draft]).on(&memory(), "a");
        assert_eq!(verdict, Verdict::NotApplicable(Why::NoSuchJobs));
        let dark = World::new([job("a")]);
        assert_eq!(dark.on(&memory(), "a"), Verdict::NoData(Missing::Unmeasured));
    }

    #[test]
    fn gpus_that_are_not_held_or_not_used() {
        let gpus = rule(Special::Gpus);
        assert_eq!(found(&gpus, job("a")), 1, "no GPU is held");
        assert_eq!(found(&gpus, job("a").held("n1", 2, 2).gpu_used(&[0.0, 0.0])), 1);
        assert_eq!(found(&gpus, job("a").held("n1", 2, 2).gpu_used(&[0.0, 0.1])), 0);
        let dark = World::new([job("a").held("n1", 2, 2)]);
        assert_eq!(dark.on(&gpus, "a"), Verdict::NoData(Missing::Unmeasured));
    }

    #[test]
    fn licences() {
        let licence = rule(Special::Licence("matlab".into()));
        for (list, hits) in
            [("matlab:2", 0), ("ansys@srv:1,matlab@srv:1", 0), ("matlab_x:1", 1), ("", 1)]
        {
            let draft = job("a").with(|job| job.licences = Some(list));
            assert_eq!(found(&licence, draft), hits, "{list}");
        }
        let unknown = World::new([job("a")]);
        assert_eq!(unknown.on(&licence, "a"), Verdict::NoData(Missing::Unmeasured));
    }

    #[test]
    fn the_set_is_told_and_hours_count() {
        let mut rule = memory();
        let world = World::new([job("a").hours(10.0).memory(1.0, 500.0)]);
        let finding = world.finding(&rule, "a");
        near(&finding, "cpu_hours", 10.0);
        assert_eq!(
            set_of(&rule, &finding.hits[0].figures).map(|s| s.name.as_str()),
            Some("special")
        );
        for (bound, hits) in [(9.9, 1), (10.0, 1), (10.1, 0)] {
            rule.bounds.cpu_hours = bound;
            assert_eq!(world.found(&rule).len(), hits);
        }
    }
}
