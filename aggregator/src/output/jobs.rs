//! `steward jobs`: the runs of a user's jobs, one a line.

use steward_common::efficiency::Efficiency;

use super::sheet::{Cell, Document, Field, Sheet, always, drop, hide, program};

/// One run of a job. What nobody knows is `None`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct JobLine {
    /// Its cluster.
    pub cluster: String,
    /// The id as people know it: `100_7`, `100+1`.
    pub job: String,
    /// Slurm's raw id.
    pub job_raw: Option<u32>,
    /// Its owner.
    pub user: String,
    /// Its name, uncut.
    pub name: String,
    /// The account it is charged to.
    pub account: String,
    /// Its partition.
    pub partition: String,
    /// Its state, Slurm's long name.
    pub state: String,
    /// When it was submitted, as people of the site read it.
    pub submit: String,
    /// When it started.
    pub start: Option<String>,
    /// When it ended.
    pub end: Option<String>,
    /// Seconds from submission to start.
    pub wait_seconds: Option<u32>,
    /// How long it held its resources, in seconds.
    pub elapsed_seconds: Option<u32>,
    /// CPUs it held.
    pub cpus: Option<u32>,
    /// GPUs it held.
    pub gpus: Option<u32>,
    /// CPU time it used, in seconds.
    pub cpu_seconds: Option<f64>,
    /// GPU time it used, in seconds.
    pub gpu_seconds: Option<f64>,
    /// Memory it asked for, in MiB.
    pub req_mem_mb: Option<f64>,
    /// Memory it held, in MiB.
    pub alloc_mem_mb: Option<f64>,
    /// The most memory it used, in MiB.
    pub max_rss_mb: Option<f64>,
    /// Its nodes, as Slurm's list.
    pub nodes: String,
}

fn count(number: Option<u32>) -> Cell {
    number.map_or(Cell::Missing, |number| Cell::Count(number.into()))
}

fn text(text: Option<&String>) -> Cell {
    text.map_or(Cell::Missing, Cell::text)
}

/// `1-02:03:04`, as Slurm writes it.
fn duration(seconds: Option<u32>) -> Cell {
    let Some(seconds) = seconds else { return Cell::Missing };
    let (days, hours) = (seconds / 86_400, seconds / 3600 % 24);
    let clock = format!("{hours:02}:{:02}:{:02}", seconds / 60 % 60, seconds % 60);
    Cell::text(if days > 0 { format!("{days}-{clock}") } else { clock })
}

fn cpu(job: &JobLine) -> Option<Efficiency> {
    Efficiency::cpu(job.cpu_seconds, job.cpus, job.elapsed_seconds)
}

fn memory(job: &JobLine) -> Option<Efficiency> {
    Efficiency::memory(job.max_rss_mb, job.alloc_mem_mb, job.elapsed_seconds)
}

/// The runs as a document; `title` says whose they are.
#[must_use]
pub fn document(jobs: &[JobLine], title: &str) -> Document {
    // Whose a job is goes without saying unless there are several.
    let several = jobs.windows(2).any(|two| matches!(two, [one, next] if one.user != next.user));
    let user = if several { drop(1, "user", "User") } else { program("user") };
    let fields: &[Field<JobLine>] = &[
        (always("job", "Job"), |job| Cell::text(&job.job)),
        (user, |job| Cell::text(&job.user)),
        (drop(1, "name", "Name"), |job| Cell::text(&job.name)),
        (always("state", "State"), |job| Cell::text(&job.state)),
        (drop(4, "start", "Start"), |job| text(job.start.as_ref())),
        (drop(2, "elapsed", "Elapsed"), |job| duration(job.elapsed_seconds)),
        (drop(3, "cpus", "CPUs"), |job| count(job.cpus)),
        (always("cpu_efficiency_percent", "CPU %"), |job| {
            Cell::share(cpu(job).map(Efficiency::raw))
        }),
        (always("memory_efficiency_percent", "Mem %"), |job| {
            Cell::share(memory(job).map(Efficiency::raw))
        }),
        (drop(6, "memory_held_gib", "of GiB"), |job| {
            Cell::number(job.alloc_mem_mb.map(|mb| mb / 1024.0))
        }),
        (hide(3, "gpus", "GPUs"), |job| count(job.gpus)),
        (hide(5, "gpu_efficiency_percent", "GPU %"), |job| {
            let used = Efficiency::cpu(job.gpu_seconds, job.gpus, job.elapsed_seconds);
            Cell::share(used.map(Efficiency::raw))
        }),
        (drop(7, "wait", "Wait"), |job| duration(job.wait_seconds)),
        (program("cluster"), |job| Cell::text(&job.cluster)),
        (program("job_raw"), |job| count(job.job_raw)),
        (program("account"), |job| Cell::text(&job.account)),
        (program("partition"), |job| Cell::text(&job.partition)),
        (program("nodes"), |job| Cell::text(&job.nodes)),
        (program("submit"), |job| Cell::text(&job.submit)),
        (program("end"), |job| text(job.end.as_ref())),
        (program("elapsed_seconds"), |job| count(job.elapsed_seconds)),
        (program("wait_seconds"), |job| count(job.wait_seconds)),
        (program("cpu_seconds"), |job| Cell::number(job.cpu_seconds)),
        (program("gpu_seconds"), |job| Cell::number(job.gpu_seconds)),
        (program("memory_asked_mib"), |job| Cell::number(job.req_mem_mb)),
        (program("memory_held_mib"), |job| Cell::number(job.alloc_mem_mb)),
        (program("memory_peak_mib"), |job| Cell::number(job.max_rss_mb)),
    ];
    let mut sheet = Sheet::new("jobs", "", fields, jobs);
    sheet.top = 0;
    let headline = if jobs.is_empty() { vec![format!("{title}: no jobs.")] } else { Vec::new() };
    Document { title: title.to_owned(), headline, facts: Vec::new(), sheets: vec![sheet] }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::format::{Format, write};
    use crate::output::screen::Screen;

    fn jobs() -> Vec<JobLine> {
        let one = JobLine {
            cluster: "c1".to_owned(),
            job: "100_7".to_owned(),
            job_raw: Some(107),
            user: "alice".to_owned(),
            name: "train\u{1b}]0;owned\u{7} a rather long name of a job that goes on".to_owned(),
            state: "COMPLETED".to_owned(),
            start: Some("2026-11-16 07:00:00".to_owned()),
            wait_seconds: Some(90),
            elapsed_seconds: Some(93_784),
            cpus: Some(8),
            gpus: Some(0),
            cpu_seconds: Some(93_784.0 * 4.0),
            alloc_mem_mb: Some(16.0 * 1024.0),
            max_rss_mb: Some(8.0 * 1024.0),
            ..JobLine::default()
        };
        let never = JobLine {
            job: "101".to_owned(),
            name: "=1+1".to_owned(),
            state: "CANCELLED".to_owned(),
            ..JobLine::default()
        };
        vec![one, never]
    }

    fn written(format: Format, width: usize) -> String {
        let document = document(&jobs(), "Jobs of alice");
        write(&document, format, Screen { width, colour: false }, None)
    }

    #[test]
    fn a_run_is_a_line_and_what_it_has_not_is_a_dash() {
        let text = written(Format::Table, 120);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 4, "{text}");
        for part in ["100_7", "train\\x1b]0;owned\\x07", "1-02:03:04", "50.0", "00:01:30"] {
            assert!(lines[2].contains(part), "{part}: {}", lines[2]);
        }
        assert!(lines[3].contains("CANCELLED") && lines[3].contains(" - "));
        // No run has a GPU, so there is no column of them.
        assert!(!lines[0].contains("GPU"));
    }

    #[test]
    fn only_the_table_cuts_names() {
        assert!(written(Format::Table, 80).contains('…'));
        assert!(
            written(Format::Table, 60).lines().all(|line| crate::output::plain::width(line) <= 60)
        );
        let json: serde_json::Value = serde_json::from_str(&written(Format::Json, 60)).unwrap();
        assert_eq!(json["jobs"][0]["name"], jobs()[0].name);
        assert_eq!(json["jobs"][0]["cpu_efficiency_percent"], 50.0);
        assert!(json["jobs"][1]["cpu_efficiency_percent"].is_null());
        assert!(written(Format::Csv, 60).contains("\"'=1+1\""));
    }

    #[test]
    fn no_jobs_is_a_sentence() {
        let none = document(&[], "Jobs of alice");
        assert_eq!(write(&none, Format::Table, Screen::file(), None), "Jobs of alice: no jobs.\n");
    }
}
