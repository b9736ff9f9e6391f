//! The part of sacct's command line that Steward uses.

use steward_common::slurm::sacct::{DELIMITER, Layout};
use steward_common::slurm::state::JobState;

/// What sacct is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// `--version`
    Version,
    /// `--helpformat`
    HelpFormat,
    /// Rows of the time from the first until before the second.
    Rows(u64, u64),
    /// Those of them that were cancelled and ended in that time.
    Cancelled(u64, u64),
    /// Those of them that ended in that time.
    Ended(u64, u64),
    /// Every run of these jobs, with the fields of this layout.
    Jobs(Vec<u64>, Layout),
    /// Every run of these jobs as JSON.
    Json(Vec<u64>),
}

/// The text of `--helpformat`: four names a line.
#[must_use]
pub fn help_format(layout: &Layout) -> String {
    let names: Vec<&str> = layout.fields().iter().map(|field| field.name()).collect();
    let line = |names: &[&str]| names.iter().map(|name| format!("{name:<20}")).collect::<String>();
    names.chunks(4).map(|names| line(names).trim_end().to_owned() + "\n").collect()
}

/// Reads the command line; `now` is seconds since 1970.
///
/// # Errors
/// If sacct, or this stand-in, would not do what is asked: the message says why.
pub fn request(
    arguments: impl IntoIterator<Item = String>,
    layout: &Layout,
    now: u64,
) -> Result<Request, String> {
    let (mut from, mut until) = (now / 86_400 * 86_400, now);
    let (mut format, mut delimiter, mut state) = (None, None, None);
    let (mut jobs, mut json) = (None, false);
    let mut flags = Vec::new();
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        let (name, value) = match argument.split_once('=') {
            Some((name, value)) if name.starts_with("--") => (name.to_owned(), Some(value)),
            _ => (argument.clone(), None),
        };
        let mut value = || match value {
            Some(value) => Ok(value.to_owned()),
            None => arguments.next().ok_or_else(|| format!("{name} needs a value")),
        };
        match name.as_str() {
            "-V" | "--version" => return Ok(Request::Version),
            "-e" | "--helpformat" => return Ok(Request::HelpFormat),
            "-S" | "--starttime" => from = time(&value()?, now)?,
            "-E" | "--endtime" => until = time(&value()?, now)?,
            "-o" | "--format" => format = Some(value()?),
            "--delimiter" => delimiter = Some(value()?),
            "-M" | "--clusters" => drop(value()?),
            "-s" | "--state" => state = Some(value()?),
            "-j" | "--jobs" => jobs = Some(numbers(&value()?)?),
            "--json" => json = true,
            "-a" | "--allusers" => flags.push('a'),
            "-D" | "--duplicates" => flags.push('D'),
            "-P" | "--parsable2" => flags.push('P'),
            "-n" | "--noheader" => flags.push('n'),
            "--noconvert" => flags.push('c'),
            "--local" => {}
            _ => return Err(format!("this stand-in for sacct does not know {argument}")),
        }
    }
    if json {
        let jobs = jobs.filter(|_| flags.contains(&'D'));
        return jobs.map(Request::Json).ok_or_else(|| "JSON is for --duplicates --jobs".to_owned());
    }
    // Who names jobs does not name users.
    let needed = if jobs.is_some() { "DPnc" } else { "aDPnc" };
    if let Some(missing) = needed.chars().find(|flag| !flags.contains(flag)) {
        return Err(format!("the text is that of -a -D -P -n --noconvert; {missing} is missing"));
    }
    if delimiter.as_deref().map(str::as_bytes) != Some(&[DELIMITER]) {
        return Err("the text is delimited by 0x1f".to_owned());
    }
    if let Some(jobs) = jobs {
        let format = format.unwrap_or_default();
        let names = format.strip_suffix(",JobIDRaw").unwrap_or(&format);
        let asked = Layout::of_names(names).filter(|asked| asked.format() == format);
        let known = |asked: &Layout| asked.fields().iter().all(|f| layout.place(*f).is_some());
        let asked = asked.filter(known);
        return asked
            .map(|asked| Request::Jobs(jobs, asked))
            .ok_or_else(|| format!("Invalid field requested: {format}"));
    }
    if !format.is_some_and(|format| format.eq_ignore_ascii_case(&layout.format())) {
        return Err(format!("the text is that of --format={}", layout.format()));
    }
    if until < from {
        return Err("Start time is after the end time".to_owned());
    }
    match state.as_deref() {
        None => Ok(Request::Rows(from, until)),
        // No job here has missed a deadline.
        Some("CANCELLED" | "CA" | "CANCELLED,DEADLINE") => Ok(Request::Cancelled(from, until)),
        Some(all) if all.split(',').eq(JobState::of_past_runs().map(|state| state.to_string())) => {
            Ok(Request::Ended(from, until))
        }
        Some(other) => Err(format!("this stand-in for sacct knows no state {other}")),
    }
}

fn numbers(list: &str) -> Result<Vec<u64>, String> {
    let number = |text: &str| text.parse().map_err(|_| format!("Invalid job id: {text}"));
    list.split(',').map(number).collect()
}

/// `now`, `uts1794787200` or `2026-11-16[T00:00[:00]]` in UTC. Slurm 22.05 refuses a bare number
/// of seconds, so this does too.
fn time(text: &str, now: u64) -> Result<u64, String> {
    let wrong = || format!("Invalid time specification (pos=0): {text}");
    if text == "now" {
        return Ok(now);
    }
    if let Some(seconds) = text.strip_prefix("uts") {
        return seconds.parse().map_err(|_| wrong());
    }
    let (date, clock) = text.split_once('T').unwrap_or((text, "00:00:00"));
    let numbers = |text: &str, by: char| -> Option<Vec<u64>> {
        text.split(by).map(|part| part.parse().ok()).collect()
    };
    let date = numbers(date, '-').ok_or_else(wrong)?;
    let clock = numbers(clock, ':').ok_or_else(wrong)?;
    let (&[year, month, day], &([_, _] | [_, _, _])) = (date.as_slice(), clock.as_slice()) else {
        return Err(wrong());
    };
    if year < 1970 || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return Err(wrong());
    }
    let second = clock.get(2).copied().unwrap_or(0);
    Ok(days_since_1970(year, month, day) * 86_400 + clock[0] * 3600 + clock[1] * 60 + second)
}

/// Howard Hinnant's days_from_civil, for years after 1970.
fn days_since_1970(year: u64, month: u64, day: u64) -> u64 {
    let year = if month <= 2 { year - 1 } else { year };
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let (era, year) = (year / 400, year % 400);
    era * 146_097 + year * 365 + year / 4 - year / 100 + day_of_year - 719_468
}
