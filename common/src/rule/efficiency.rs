//! Users ranked by what they held, with how well they used it: what `low-cpu-efficiency`,
//! `low-gpu-efficiency` and `low-xpu-efficiency` share.

use crate::intern::Name;

use super::facts::Job;
use super::finding::{Audience, Figures, Finding, Hit, Value};
use super::measure::{self, Coverage, Missing, Used};
use super::option::Share;
use super::portfolio::{Portfolio, Totals};
use super::{Subject, Verdict, Why};

/// What is ranked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Resource {
    Cpu,
    Gpu,
}

impl Resource {
    pub(super) fn used(self, job: &Job, coverage: Share) -> Result<Used, Missing> {
        match self {
            Resource::Cpu => measure::cpu(job, coverage),
            Resource::Gpu => measure::gpu(job, coverage),
        }
    }

    pub(super) fn hours(self, job: &Job) -> f64 {
        match self {
            Resource::Cpu => job.cpu_hours(),
            Resource::Gpu => job.gpu_hours(),
        }
    }

    fn of(self, totals: Totals) -> f64 {
        match self {
            Resource::Cpu => totals.cpu_hours,
            Resource::Gpu => totals.gpu_hours,
        }
    }

    /// Keys of figures: hours held and measured, used of that, place by hours, hours below a target.
    fn keys(self) -> [&'static str; 4] {
        match self {
            Resource::Cpu => ["cpu_hours", "cpu_efficiency", "cpu_rank", "cpu_hours_below_target"],
            Resource::Gpu => ["gpu_hours", "gpu_efficiency", "gpu_rank", "gpu_hours_below_target"],
        }
    }
}

/// What one user held and used.
#[derive(Debug)]
pub(super) struct Ranked<'a> {
    pub(super) user: Name,
    /// The jobs that count.
    pub(super) jobs: Vec<&'a Job>,
    /// Of those that were measured.
    pub(super) used: Used,
    /// By all of them: the place in the ranking does not depend on who measured.
    held: f64,
    pub(super) coverage: Coverage,
    /// From 1.
    pub(super) rank: usize,
}

/// All users with jobs that count, those who held most first.
pub(super) fn ranked<'a>(
    portfolio: &Portfolio<'a>,
    resource: Resource,
    counts: impl Fn(&Job) -> bool,
    coverage: Share,
) -> Vec<Ranked<'a>> {
    let mut users: Vec<Ranked<'a>> = portfolio
        .users()
        .map(|(user, jobs)| {
            let jobs: Vec<&Job> = jobs
                .iter()
                .copied()
                .filter(|job| resource.hours(job) > 0.0 && counts(job))
                .collect();
            let mut known = Coverage::default();
            let (mut used, mut held) = (Used::default(), 0.0);
            for job in &jobs {
                let hours = resource.hours(job);
                held += hours;
                if let Some(of_job) = known.note(hours, resource.used(job, coverage)) {
                    used.add(of_job);
                }
            }
            Ranked { user, jobs, used, held, coverage: known, rank: 0 }
        })
        .filter(|ranked| !ranked.jobs.is_empty())
        .collect();
    // Stable, so that those who held the same stand by name.
    users.sort_by(|a, b| b.held.total_cmp(&a.held));
    for (ranked, rank) in users.iter_mut().zip(1..) {
        ranked.rank = rank;
    }
    users
}

impl Ranked<'_> {
    /// The share of all that was held at the scope's place, by everybody.
    pub(super) fn proportion(&self, portfolio: &Portfolio<'_>, resource: Resource) -> f64 {
        let all = resource.of(portfolio.total());
        let own = resource.of(portfolio.held_by(self.user));
        if all > 0.0 { own / all } else { 0.0 }
    }

    /// Used of held, of what was measured.
    pub(super) fn efficiency(&self) -> Option<f64> {
        self.used.share()
    }

    pub(super) fn figures(
        &self,
        figures: Figures,
        portfolio: &Portfolio<'_>,
        resource: Resource,
    ) -> Figures {
        let [hours, efficiency, rank, _] = resource.keys();
        figures
            .with(hours, self.used.held)
            .with_known(efficiency, self.efficiency().map(Value::Share))
            .with(rank, self.rank)
            .with("proportion", Value::Share(self.proportion(portfolio, resource)))
            .with("jobs", self.jobs.len())
            .with("jobs_interactive", self.interactive(portfolio))
            .with_known("coverage", self.coverage.share().map(Value::Share))
    }

    fn interactive(&self, portfolio: &Portfolio<'_>) -> usize {
        let names = &portfolio.facts().names;
        self.jobs.iter().filter(|job| is_interactive(names.text(job.name))).count()
    }

    /// The jobs that were measured, with what each of them used.
    pub(super) fn hits(&self, resource: Resource, coverage: Share) -> Vec<Hit> {
        let [hours, efficiency, ..] = resource.keys();
        let hit = |job: &&Job| {
            let used = resource.used(job, coverage).ok()?;
            let share = used.share()?;
            let figures =
                Figures::default().with(hours, used.held).with(efficiency, Value::Share(share));
            Some(Hit::new(job, Some(1.0 - share), figures))
        };
        self.jobs.iter().filter_map(hit).collect()
    }

    fn finding(&self, portfolio: &Portfolio<'_>, resource: Resource, bounds: &Bounds) -> Finding {
        let [.., below_target] = resource.keys();
        let figures = self
            .figures(Figures::default(), portfolio, resource)
            .with(below_target, self.used.below(bounds.target));
        Finding::new(Audience::User, figures, self.hits(resource, bounds.coverage))
    }
}

/// Where low efficiency begins to matter.
#[derive(Debug)]
pub(super) struct Bounds {
    pub(super) efficiency: Share,
    pub(super) target: Share,
    pub(super) hours_below_target: f64,
    pub(super) hours: f64,
    pub(super) proportion: Share,
    pub(super) top_users: u32,
    pub(super) coverage: Share,
    pub(super) hours_coverage: Share,
}

/// Judges those who held most.
pub(super) fn low(
    portfolio: &Portfolio<'_>,
    resource: Resource,
    counts: impl Fn(&Job) -> bool,
    bounds: &Bounds,
) -> Vec<(Subject, Verdict)> {
    let top = usize::try_from(bounds.top_users).unwrap_or(usize::MAX);
    let judge = |user: &Ranked<'_>| {
        if user.rank > top {
            return Verdict::NotApplicable(Why::NotAmongTop);
        }
        if let Some(missing) = user.coverage.lack(bounds.hours_coverage) {
            return Verdict::NoData(missing);
        }
        let low = user.efficiency().is_some_and(|used| used <= bounds.efficiency.get());
        let much = user.used.held >= bounds.hours
            && user.used.below(bounds.target) >= bounds.hours_below_target
            && user.proportion(portfolio, resource) >= bounds.proportion.get();
        if low && much {
            Verdict::Finding(user.finding(portfolio, resource, bounds))
        } else {
            Verdict::Fine
        }
    };
    let users = ranked(portfolio, resource, counts, bounds.coverage);
    users.iter().map(|user| (Subject::user(user.user), judge(user))).collect()
}

/// Whether the name is that of a session with a person before it, as salloc and Open OnDemand
/// give it.
pub(super) fn is_interactive(name: &str) -> bool {
    name.starts_with("interactive") || name.starts_with("sys/dashboard")
}
