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
    let list = text.strip_prefix('[').and_then(|list| list.strip_suffix(']')).unwrap_or(text);
    let list = list.split_once('%').map_or(list, |(list, _)| list);
    let mut sum = 0u64;
    for item in list.split(',') {
        let (range, step) = match item.split_once(':') {
            Some((range, step)) => (range, digits(step).filter(|step| *step > 0)),
            None => (item, Some(1)),
        };
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let size = digits(last).ok_or_else(wrong)?.checked_sub(digits(first).ok_or_else(wrong)?);
        let tasks = (size.ok_or_else(wrong)? / step.ok_or_else(wrong)?).checked_add(1);
        sum = tasks.and_then(|tasks| sum.checked_add(tasks)).ok_or_else(wrong)?;
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::count;

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
}
