//! `steward jobs`: which runs are asked for, what is told of each, and how people read it. Both
//! ends of the Unix socket speak in these types.

use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};
use steward_common::time::Timestamp;
use steward_common::window::Window;

use crate::output::format::Format;
use crate::output::jobs::JobLine;

/// Whose jobs are meant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Whose {
    /// Those of the one who asks.
    Own,
    /// Those of these users.
    Of(Vec<String>),
    /// Everybody's.
    All,
}

/// What is asked. An empty list leaves nothing out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// Whose jobs.
    pub whose: Whose,
    /// Those that waited or ran at some moment from here on, in seconds since 1970,
    pub from: i64,
    /// and before here.
    pub to: i64,
    /// Only in these states, by Slurm's long names.
    pub states: Vec<String>,
    /// Only charged to these accounts.
    pub accounts: Vec<String>,
    /// Only in these partitions.
    pub partitions: Vec<String>,
    /// Only of these clusters.
    pub clusters: Vec<String>,
    /// Only with names like this, where `*` is any text and `?` any character.
    pub name: Option<String>,
    /// Only the job of this id: Slurm's raw number, or as people know it (`100_7`).
    #[serde(default)]
    pub job_id: Option<String>,
    /// Only so many, the newest; 0 is all.
    pub limit: usize,
}

impl Question {
    /// The time asked for; `None` if it ends before it begins.
    #[must_use]
    pub fn window(&self) -> Option<Window> {
        Window::new(Timestamp::new(self.from), Timestamp::new(self.to))
    }
}

/// What comes back.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// The runs, the last submitted first.
    pub runs: Vec<JobRun>,
    /// Whether there may be more, which were left out because of the limit.
    pub cut: bool,
}

/// One run of a job. Times are seconds since 1970; what nobody knows is `None`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "each is the column of its name in the archive")]
pub struct JobRun {
    pub cluster: String,
    pub job_id: String,
    pub job_id_raw: Option<u32>,
    pub user: String,
    pub job_name: String,
    pub account: String,
    pub partition: String,
    pub state: String,
    pub submit_time: i64,
    pub start_time: Option<i64>,
    pub end_time: Option<i64>,
    pub wait_seconds: Option<u32>,
    pub elapsed_seconds: Option<u32>,
    pub alloc_cpus: Option<u32>,
    pub alloc_gpus: Option<u32>,
    pub total_cpu_seconds: Option<f64>,
    pub gpu_used_seconds: Option<f64>,
    pub req_mem_mb: Option<f64>,
    pub alloc_mem_mb: Option<f64>,
    pub max_rss_mb: Option<f64>,
    pub node_list: String,
    pub collected_at: Option<i64>,
}

impl JobRun {
    /// The newest first: by submission, then by number.
    #[must_use]
    pub fn age(&self) -> (i64, Option<u32>) {
        (self.submit_time, self.job_id_raw)
    }

    /// As a line: times on the clocks of `zone`, for people short, for programs whole.
    #[must_use]
    pub fn line(self, zone: &TimeZone, format: Format) -> JobLine {
        let pattern = match format {
            Format::Json | Format::Csv => "%Y-%m-%dT%H:%M:%S%:z",
            Format::Table | Format::Markdown | Format::Html => "%Y-%m-%d %H:%M",
        };
        let time = |second: i64| match jiff::Timestamp::from_second(second) {
            Ok(moment) => moment.to_zoned(zone.clone()).strftime(pattern).to_string(),
            // Beyond the calendar.
            Err(_) => second.to_string(),
        };
        JobLine {
            cluster: self.cluster,
            job: self.job_id,
            job_raw: self.job_id_raw,
            user: self.user,
            name: self.job_name,
            account: self.account,
            partition: self.partition,
            state: self.state,
            submit: time(self.submit_time),
            start: self.start_time.map(time),
            end: self.end_time.map(time),
            wait_seconds: self.wait_seconds,
            elapsed_seconds: self.elapsed_seconds,
            cpus: self.alloc_cpus,
            gpus: self.alloc_gpus,
            cpu_seconds: self.total_cpu_seconds,
            gpu_seconds: self.gpu_used_seconds,
            req_mem_mb: self.req_mem_mb,
            alloc_mem_mb: self.alloc_mem_mb,
            max_rss_mb: self.max_rss_mb,
            nodes: self.node_list,
        }
    }
}

/// Whether a text is like a pattern, in which `*` is any text and `?` any one character.
#[must_use]
pub fn is_like(text: &str, pattern: &str) -> bool {
    let (mut text, mut pattern) = (text.chars(), pattern.chars());
    // Where to go on when it turns out that the last star must take one character more.
    let mut again: Option<(std::str::Chars<'_>, std::str::Chars<'_>)> = None;
    loop {
        let (mut rest, mut wanted) = (text.clone(), pattern.clone());
        match (wanted.next(), rest.next()) {
            (None, None) => return true,
            (Some('*'), _) => {
                again = Some((text.clone(), wanted.clone()));
                pattern = wanted;
                continue;
            }
            (Some('?'), Some(_)) => {}
            (Some(one), Some(other)) if one == other => {}
            _ => {
                let Some((mut longer, after)) = again else { return false };
                if longer.next().is_none() {
                    return false;
                }
                again = Some((longer.clone(), after.clone()));
                (text, pattern) = (longer, after);
                continue;
            }
        }
        (text, pattern) = (rest, wanted);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_are_any_text_and_question_marks_any_character() {
        for (text, pattern) in [
            ("", ""),
            ("", "*"),
            ("train", "train"),
            ("train", "t*n"),
            ("train", "*"),
            ("train", "tr??n"),
            ("aXbXc", "*X*c"),
            ("größe", "gr??e"),
            ("a*b", "a*b"),
            ("mississippi", "m*issip*i"),
        ] {
            assert!(is_like(text, pattern), "{text:?} is like {pattern:?}");
        }
        for (text, pattern) in
            [("", "?"), ("train", "rain"), ("train", "t?n"), ("train", ""), ("train", "*x*")]
        {
            assert!(!is_like(text, pattern), "{text:?} is not like {pattern:?}");
        }
        // Many stars cost little: nobody may keep the service busy with a pattern.
        let (text, pattern) = ("a".repeat(2000), "*a".repeat(500) + "b");
        let begun = std::time::Instant::now();
        assert!(!is_like(&text, &pattern));
        assert!(begun.elapsed() < std::time::Duration::from_secs(2));
    }

    #[test]
    fn times_are_those_of_the_site_and_whole_for_programs() {
        let run = JobRun { submit_time: 1_782_864_000, ..JobRun::default() };
        let zone = TimeZone::get("Europe/Berlin").unwrap();
        assert_eq!(run.clone().line(&zone, Format::Table).submit, "2026-07-01 02:00");
        assert_eq!(run.line(&zone, Format::Json).submit, "2026-07-01T02:00:00+02:00");
    }
}
