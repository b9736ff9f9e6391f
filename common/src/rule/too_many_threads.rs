//! `too-many-threads`.

use super::advice::{Advice, by_job};
use super::facts::Job;
use super::finding::{Figures, Value};
use super::measure::{self, Missing};
use super::option::{Share, options};
use super::portfolio::{Portfolio, Scope};
use super::{Need, Rule, RuleId, Subject, Verdict};

options! {
    /// A program with many more threads than CPUs.
    TooManyThreads {
        /// Threads of one program on a node, as a multiple of the CPUs there, above which the job is told of.
        ratio: f64 = 2.0;
        /// Share of a job that must have been measured.
        coverage: Share = Share::per_cent(80);
    }
}

/// The rule with its defaults.
pub(super) fn rule() -> Box<dyn Rule> {
    Box::new(TooManyThreads::default())
}

impl Rule for TooManyThreads {
    fn id(&self) -> RuleId {
        RuleId("too-many-threads")
    }

    fn doc(&self) -> &'static str {
        "The threads of processes of one name on a node, of the CPUs that the job holds on that node.\n\
         Threads beyond the CPUs take turns, and the program gets slower by it.\n\
         Set OMP_NUM_THREADS (or the program's own option) to SLURM_CPUS_PER_TASK."
    }

    fn needs(&self) -> &'static [Need] {
        &[Need::Accounting, Need::Processes]
    }

    fn scope(&self) -> Scope {
        Scope::started(5)
    }

    fn check(&self, portfolio: &Portfolio<'_>) -> Vec<(Subject, Verdict)> {
        by_job(portfolio, true, |job| self.look(job))
    }
}

impl TooManyThreads {
    fn look(&self, job: &Job) -> Result<Option<Advice>, Missing> {
        let work = measure::work(job, self.coverage)?;
        let nodes = work.threads.as_deref().ok_or(Missing::Unmeasured)?;
        let many =
            nodes.iter().filter(|node| f64::from(node.threads) > self.ratio * f64::from(node.cpus));
        let worst = many.max_by_key(|node| node.threads);
        Ok(worst.map(|node| {
            let figures = Figures::default()
                .with("node", Value::Name(node.node))
                .with("threads", node.threads)
                .with("cpus", node.cpus);
            Advice::new(figures)
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::intern::Names;
    use crate::rule::low_cpu::LowCpu;
    use crate::rule::sample::{World, job};
    use crate::rule::usage::{NodeThreads, Work};

    fn verdict(nodes: &[(u32, u32)]) -> Verdict {
        verdict_of(&TooManyThreads::default(), nodes)
    }

    fn verdict_of(rule: &TooManyThreads, nodes: &[(u32, u32)]) -> Verdict {
        let node = Names::default().intern("");
        let threads = nodes.iter().map(|(cpus, threads)| NodeThreads {
            node,
            cpus: *cpus,
            threads: *threads,
        });
        let work = Work { threads: Some(threads.collect()), ..Work::default() };
        World::new([job("a").worked(work)]).on(rule, "a")
    }

    #[test]
    fn bounds_just_below_equal_and_just_above() {
        let found = |threads| verdict(&[(4, threads)]).finding().is_some();
        assert_eq!([7, 8, 9].map(found), [false, false, true]);
    }

    /// petricore compares the threads of a node with the CPUs of all nodes.
    #[test]
    fn threads_are_compared_with_the_cpus_of_their_own_node() {
        let finding = verdict(&[(4, 4), (4, 9)]);
        assert_eq!(finding.finding().unwrap().figures.number("threads"), Some(9.0));
        assert_eq!(verdict(&[(4, 8), (4, 8)]), Verdict::Fine);
    }

    /// TrailblazingTurtle has means of running threads, 20.1 of 16 cores; ours are the most threads
    /// at one time, whole ones. Its other comment, on 12 and 11.9 of 16 cores, is about cores that
    /// are not used: `low-cpu`.
    #[test]
    fn n15_a_quarter_more_threads_than_cores_will_do_and_less_than_three_quarters_is_little() {
        let rule = TooManyThreads { ratio: 1.25, ..TooManyThreads::default() };
        assert_eq!(verdict_of(&rule, &[(16, 20)]), Verdict::Fine, "1.25 · 16 = 20");
        let over = verdict_of(&rule, &[(16, 21)]);
        assert_eq!(over.finding().unwrap().figures.number("threads"), Some(21.0));
        let little = LowCpu { efficiency: Share::per_cent(75), ..LowCpu::default() };
        let under = |cores: f64| {
            let draft = job("a").held("n1", 16, 0).cpu_used(cores / 16.0);
            World::new([draft]).on(&little, "a").finding().is_some()
        };
        assert_eq!([12.0, 11.9].map(under), [false, true], "0.75 · 16 = 12");
    }

    /// ClusterCockpit has a mean load of 86.5; threads are whole.
    #[test]
    fn n22_load_beyond_one_and_a_fifth_of_72_cores() {
        let rule = TooManyThreads { ratio: 1.2, ..TooManyThreads::default() };
        let over = |threads| verdict_of(&rule, &[(72, threads)]).finding().is_some();
        assert_eq!([86, 87].map(over), [false, true], "1.2 · 72 = 86.4");
    }
}
