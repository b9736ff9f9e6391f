//! Report `waste`: what rules found, in one unit, so that users can be compared whatever they waste.
//!
//! The waste of a job is counted once: the largest share that any rule calls wasted, of the job's
//! billing hours, never the sum over rules. Findings that are mere advice do not count. Rules judge
//! whole jobs, so hours are those of whole jobs and not pro-rated to the window.

use std::collections::{BTreeMap, HashMap};

use crate::intern::Name;
use crate::rule::measure::{self, Used};
use crate::rule::{Audience, Job, JobKey, Share};

use super::held::jobs;
use super::table::{Field, column};
use super::{Ask, Bars, Needs, Prices, Report, Table, Value, View, Weight};

/// The report.
pub const REPORT: Report = Report {
    about: "what rules found wasted, in billing hours, by user and by account",
    needs: Needs::Findings,
    make,
};

/// What a user or an account wasted.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Row {
    /// Who.
    pub name: String,
    /// On which cluster.
    pub cluster: String,
    /// Billing hours wasted; `None` if no wasteful job has a billing weight.
    pub wasted: Option<f64>,
    /// Billing hours held by all jobs, wasteful or not.
    pub held: f64,
    /// Jobs that waste.
    pub jobs: u64,
    /// Of these, jobs without a billing weight.
    pub unbilled_jobs: u64,
    /// CPU-hours that those wasted.
    pub unbilled_cpu_hours: f64,
    /// The instance of a rule that contributes most.
    pub rule: Option<String>,
    /// Idle CPU-hours of jobs that waste, of those that were measured.
    pub idle_cpu_hours: Option<f64>,
    /// Idle GPU-hours of the same.
    pub idle_gpu_hours: Option<f64>,
}

impl Row {
    /// Wasted of held; `None` if no billing hours were held.
    #[must_use]
    pub fn share(&self) -> Option<f64> {
        self.wasted.filter(|_| self.held > 0.0).map(|wasted| wasted / self.held)
    }

    /// What it cost; `None` without a price.
    #[must_use]
    pub fn cost(&self, prices: &Prices) -> Option<f64> {
        let (price, _) = prices.billing_hour.as_ref()?;
        Some(self.wasted? * price)
    }

    /// The energy that idle CPUs and GPUs took, in kWh; `None` if nobody says what they take, or
    /// nobody measured that they were idle.
    #[must_use]
    pub fn energy(&self, prices: &Prices) -> Option<f64> {
        let kwh = |hours: Option<f64>, watts: Option<f64>| Some(hours? * watts? / 1000.0);
        let cpu = kwh(self.idle_cpu_hours, prices.cpu_watts);
        let gpu = kwh(self.idle_gpu_hours, prices.gpu_watts);
        match (cpu, gpu) {
            (None, None) => None,
            (cpu, gpu) => Some(cpu.unwrap_or(0.0) + gpu.unwrap_or(0.0)),
        }
    }
}

/// The most that any rule calls wasted of a job, and the place of that rule.
type Worst = HashMap<JobKey, (Share, usize)>;

fn worst(view: &View<'_>) -> Worst {
    let mut worst = Worst::new();
    for (place, (_, findings)) in view.found.iter().enumerate() {
        let told = findings.iter().filter(|(_, finding)| finding.audience > Audience::Advice);
        for hit in told.flat_map(|(_, finding)| &finding.hits) {
            let Some(share) = hit.wasted.filter(|share| share.get() > 0.0) else { continue };
            let known = worst.entry(hit.job).or_insert((share, place));
            if share.get() > known.0.get() {
                *known = (share, place);
            }
        }
    }
    worst
}

#[derive(Default)]
struct Sum {
    row: Row,
    /// Billing hours and CPU-hours wasted, by the place of the rule.
    by_rule: BTreeMap<usize, (f64, f64)>,
}

impl Sum {
    fn add(&mut self, job: &Job, worst: Option<(Share, usize)>, coverage: Share) {
        let billed = job.billing.map(|weight| weight as f64 * job.hours());
        self.row.held += billed.unwrap_or(0.0);
        let Some((share, place)) = worst else { return };
        let by_rule = self.by_rule.entry(place).or_default();
        by_rule.1 += share.get() * job.cpu_hours();
        self.row.jobs += 1;
        if let Some(billed) = billed {
            by_rule.0 += share.get() * billed;
            *self.row.wasted.get_or_insert(0.0) += share.get() * billed;
        } else {
            self.row.unbilled_jobs += 1;
            self.row.unbilled_cpu_hours += share.get() * job.cpu_hours();
        }
        let add = |to: &mut Option<f64>, used: Used| *to.get_or_insert(0.0) += used.unused();
        if let Ok(used) = measure::cpu(job, coverage) {
            add(&mut self.row.idle_cpu_hours, used);
        }
        if job.gpu_count() > 0
            && let Ok(used) = measure::gpu(job, coverage)
        {
            add(&mut self.row.idle_gpu_hours, used);
        }
    }
}

/// By whom waste is summed up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// By user.
    User,
    /// By account.
    Account,
}

/// The rows of those who wasted something, most first.
#[must_use]
pub fn rows(views: &[View<'_>], ask: &Ask, by: By) -> Vec<Row> {
    let mut rows = Vec::new();
    for view in views {
        let worst = worst(view);
        let mut sums: HashMap<Name, Sum> = HashMap::new();
        for (job, _) in jobs(view.facts, ask) {
            let name = match by {
                By::User => job.user,
                By::Account => job.account,
            };
            let worst = worst.get(&job.key).copied();
            sums.entry(name).or_default().add(job, worst, ask.coverage);
        }
        for (name, sum) in sums.into_iter().filter(|(_, sum)| sum.row.jobs > 0) {
            // Of equals the first in the order of the instances.
            let most = sum
                .by_rule
                .iter()
                .rev()
                .max_by(|(_, a), (_, b)| a.0.total_cmp(&b.0).then_with(|| a.1.total_cmp(&b.1)));
            let rule = most.and_then(|(place, _)| view.found.get(*place));
            rows.push(Row {
                name: view.text(name),
                cluster: view.cluster(),
                rule: rule.map(|(name, _)| (*name).to_owned()),
                ..sum.row
            });
        }
    }
    rows.sort_by(|a, b| {
        let wasted = |row: &Row| row.wasted.unwrap_or(0.0);
        (wasted(b).total_cmp(&wasted(a)))
            .then_with(|| b.unbilled_cpu_hours.total_cmp(&a.unbilled_cpu_hours))
            .then_with(|| (&a.cluster, &a.name).cmp(&(&b.cluster, &b.name)))
    });
    rows
}

fn make(views: &[View<'_>], ask: &Ask) -> Vec<Table> {
    let user: Field<Row> = (column("user", "User", Weight::Always), |row| Value::text(&row.name));
    let account: Field<Row> =
        (column("account", "Account", Weight::Always), |row| Value::text(&row.name));
    let users = rows(views, ask, By::User);
    let mut by_user = table("users", "Waste by user", user, &users, ask);
    by_user.bars.push(Bars {
        title: "Billing hours wasted",
        key: "billing_hours_wasted",
        waste: true,
    });
    if ask.prices.cpu_watts.or(ask.prices.gpu_watts).is_some() {
        by_user.bars.push(Bars { title: "Energy wasted, kWh", key: "energy_kwh", waste: true });
    }
    by_user.notes = notes(&users, ask);
    let accounts = rows(views, ask, By::Account);
    vec![by_user, table("accounts", "Waste by account", account, &accounts, ask)]
}

fn table(
    name: &'static str,
    title: &'static str,
    first: Field<Row>,
    rows: &[Row],
    ask: &Ask,
) -> Table {
    let fields: &[Field<Row>] = &[
        first,
        (column("cluster", "Cluster", Weight::Drop(3)), |row| Value::text(&row.cluster)),
        (column("billing_hours_wasted", "Wasted, billing h", Weight::Always), |row| {
            Value::number(row.wasted)
        }),
        (column("wasted_percent", "% of held", Weight::Always), |row| Value::share(row.share())),
        (column("billing_hours", "Held", Weight::Drop(2)), |row| Value::Number(row.held)),
        (column("jobs", "Jobs", Weight::Always), |row| Value::Count(row.jobs)),
        (column("rule", "Mostly by", Weight::Always), |row| {
            row.rule.as_ref().map_or(Value::Missing, Value::text)
        }),
        (column("unbilled_jobs", "Unbilled jobs", Weight::Hide(1)), |row| {
            Value::Count(row.unbilled_jobs)
        }),
        (column("cpu_hours_wasted_unbilled", "Their CPU hours", Weight::Hide(1)), |row| {
            Value::Number(row.unbilled_cpu_hours)
        }),
        (column("cpu_hours_idle", "cpu_hours_idle", Weight::Program), |row| {
            Value::number(row.idle_cpu_hours)
        }),
        (column("gpu_hours_idle", "gpu_hours_idle", Weight::Program), |row| {
            Value::number(row.idle_gpu_hours)
        }),
    ];
    let mut table = Table::new(name, title, fields, rows);
    table.top = 15;
    let Prices { billing_hour, cpu_watts, gpu_watts } = &ask.prices;
    if let Some((_, currency)) = billing_hour {
        let head = format!("Cost, {currency}");
        let column = super::Column { key: "cost", head: head.into(), weight: Weight::Always };
        add(&mut table, rows, column, |row| row.cost(&ask.prices));
    }
    if cpu_watts.or(*gpu_watts).is_some() {
        add(&mut table, rows, column("energy_kwh", "kWh", Weight::Always), |row| {
            row.energy(&ask.prices)
        });
    }
    table
}

fn add(table: &mut Table, rows: &[Row], column: super::Column, of: impl Fn(&Row) -> Option<f64>) {
    table.columns.push(column);
    for (values, row) in table.rows.iter_mut().zip(rows) {
        values.push(Value::number(of(row)));
    }
}

fn notes(rows: &[Row], ask: &Ask) -> Vec<String> {
    let mut notes = vec![
        "A job's waste counts once: the largest share that any rule calls wasted, of its billing \
         hours. Hours are those of whole jobs."
            .to_owned(),
    ];
    let unbilled: u64 = rows.iter().map(|row| row.unbilled_jobs).sum();
    if unbilled > 0 {
        let cpu: f64 = rows.iter().map(|row| row.unbilled_cpu_hours).sum();
        notes.push(format!(
            "Jobs without a billing weight: {unbilled}. The {cpu:.1} CPU-hours that they wasted are \
             not in the billing hours."
        ));
    }
    let Prices { cpu_watts, gpu_watts, .. } = ask.prices;
    let part =
        |watts: Option<f64>, unit: &str| watts.map(|watts| format!("{watts} W an idle {unit}"));
    let parts: Vec<String> =
        [part(cpu_watts, "CPU"), part(gpu_watts, "GPU")].into_iter().flatten().collect();
    if !parts.is_empty() {
        notes.push(format!("kWh are {}, of jobs whose use was measured.", parts.join(" and ")));
    }
    notes
}
