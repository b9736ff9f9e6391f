//! Lists of array tasks: `3-999%3`, `1,5-9:2`.

use super::ParseError;
use super::number::digits;

const EXPECTED: &str = "a list of array tasks such as 1,5-9:2%4";

/// How many tasks a list stands for. What stands behind `%` says how many may run at a time.
///
/// # Errors
/// If the text is no such list; one that Slurm cut off (`1,3,...`) is none.
pub fn count(text: &str) -> Result<u64, ParseError> {
    let wrong = || ParseError::new("array tasks", text, EXPECTED);
    let mut sum = 0u64;
    for item in items(text) {
        let (first, last, step) = item.ok_or_else(wrong)?;
        let tasks = ((last - first) / step).checked_add(1);
        sum = tasks.and_then(|tasks| sum.checked_add(tasks)).ok_or_else(wrong)?;
    }
    Ok(sum)
}

/// Whether a task is in the list, as far as that can be read.
#[must_use]
pub fn holds(text: &str, task: u32) -> bool {
    let task = u64::from(task);
    items(text).flatten().any(|(first, last, step)| {
        (first..=last).contains(&task) && (task - first).is_multiple_of(step)
    })
}

/// The items of a list: first, last and step; `None` for one that is none.
fn items(text: &str) -> impl Iterator<Item = Option<(u64, u64, u64)>> {
    let list = text.strip_prefix('[').and_then(|list| list.strip_suffix(']')).unwrap_or(text);
    let list = list.split_once('%').map_or(list, |(list, _)| list);
    list.split(',').map(|item| {
        let (range, step) = item.split_once(':').unwrap_or((item, "1"));
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last, step) = (digits(first)?, digits(last)?, digits(step)?);
        (first <= last && step > 0).then_some((first, last, step))
    })
}

#[cfg(test)]
mod tests {
    use super::{count, holds};

    #[test]
    fn tasks_are_counted() {
        for (text, expected) in [
            ("0", 1),
            ("3-999%3", 997),
            ("0-999", 1000),
            ("1,5-9:2%4", 4),
            ("1-10:3,20", 5),
            ("[1-4%2]", 4),
        ] {
            assert_eq!(count(text), Ok(expected), "{text}");
        }
        for text in ["", "a", "5-1", "1-3:0", "1,3,...", "1-", "0-18446744073709551615"] {
            assert!(count(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_task_is_found_in_a_list() {
        for (text, task, expected) in [
            ("3-999%3", 5, true),
            ("3-999%3", 2, false),
            ("3-999%3", 1000, false),
            ("[1,5-9:2%4]", 7, true),
            ("[1,5-9:2%4]", 8, false),
            ("1,3,...", 3, true),
            ("1,3,...", 4, false),
        ] {
            assert_eq!(holds(text, task), expected, "{task} in {text}");
        }
    }
}
