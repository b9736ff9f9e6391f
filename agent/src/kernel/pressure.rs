//! Pressure stall information: for how long work stood still for want of CPU, memory or I/O.
//!
//! `some avg10=0.00 avg60=0.00 avg300=0.00 total=12`, then the same for `full`; the total is in
//! microseconds since the cgroup was made. The averages are not read: whoever keeps the totals can
//! make any average of them.

use std::path::Path;
use std::time::Duration;

use nix::libc;

use super::error::ReadError;
use super::file;

/// How long work stood still, in all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pressure {
    /// At least one task waited.
    pub some: Option<Duration>,
    /// No task got on. Before Linux 5.13 there is no such line for the CPU.
    pub full: Option<Duration>,
}

/// Reads a pressure file; `None` if the kernel has none, or was booted with them switched off.
///
/// # Errors
/// If it is there and cannot be read, or its text is odd.
pub fn read(path: &Path) -> Result<Option<Pressure>, ReadError> {
    none_if_off(file::optional_text(path))?.map(|text| parse(path, &text)).transpose()
}

/// A kernel that could and was told not to (`psi=0`) has the files and refuses to read them.
fn none_if_off(read: Result<Option<String>, ReadError>) -> Result<Option<String>, ReadError> {
    match read {
        Err(ReadError::Io { source, .. }) if source.raw_os_error() == Some(libc::EOPNOTSUPP) => {
            Ok(None)
        }
        other => other,
    }
}

/// The totals in `text`; `path` is for messages.
///
/// # Errors
/// If neither line is there, or one has no total that is a number.
pub fn parse(path: &Path, text: &str) -> Result<Pressure, ReadError> {
    let total = |key: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' '));
        let Some(line) = line else { return Ok(None) };
        line.split(' ')
            .find_map(|field| field.strip_prefix("total="))
            .ok_or_else(|| ReadError::malformed(path, "a field 'total='", line))
            .and_then(|value| file::number(path, value))
            .map(|micros| Some(Duration::from_micros(micros)))
    };
    let pressure = Pressure { some: total("some")?, full: total("full")? };
    if pressure.some.is_none() && pressure.full.is_none() {
        return Err(ReadError::malformed(path, "a line 'some' or 'full'", text));
    }
    Ok(pressure)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PATH: &str = "/sys/fs/cgroup/job_1/cpu.pressure";

    fn totals(text: &str) -> Option<(Option<u128>, Option<u128>)> {
        let pressure = parse(Path::new(PATH), text).ok()?;
        let micros = |time: Option<Duration>| time.map(|time| time.as_micros());
        Some((micros(pressure.some), micros(pressure.full)))
    }

    #[test]
    fn totals_are_read_and_a_missing_line_is_absent() {
        let some = "some avg10=6.43 avg60=3.72 avg300=0.93 total=2937910\n";
        let full = "full avg10=0.22 avg60=0.15 avg300=0.03 total=148023\n";
        let (a, b) = (Some(2_937_910), Some(148_023));
        let table = [
            (format!("{some}{full}"), (a, b)),
            // The CPU before Linux 5.13, and interrupts.
            (some.to_owned(), (a, None)),
            (full.to_owned(), (None, b)),
            ("some total=0\n".to_owned(), (Some(0), None)),
            ("some total=18446744073709551615".to_owned(), (Some(u128::from(u64::MAX)), None)),
            (format!("none total=1\nsomething total=2\n{full}"), (None, b)),
        ];
        for (text, expected) in table {
            assert_eq!(totals(&text), Some(expected), "{text:?}");
        }
    }

    #[test]
    fn a_text_that_is_no_pressure_names_the_file() {
        let huge = "some total=18446744073709551616\n";
        for bad in [
            "",
            "\n",
            "some",
            "some ",
            "some avg10=0.00\n",
            "some total=\n",
            "some total=max\n",
            "some total=-1\n",
            "some total=1.5\n",
            "some total=1\nfull avg10=0\n",
            huge,
        ] {
            let message = parse(Path::new(PATH), bad).unwrap_err().to_string();
            assert!(message.starts_with(PATH), "{bad:?}: {message}");
        }
    }

    #[test]
    fn no_file_and_a_kernel_that_was_told_not_to_measure_are_absent_and_no_error() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("cpu.pressure");
        assert_eq!(read(&path).unwrap(), None);
        std::fs::write(&path, "some total=7\n").unwrap();
        let expected = Pressure { some: Some(Duration::from_micros(7)), full: None };
        assert_eq!(read(&path).unwrap(), Some(expected));
        let answer = |errno| {
            let source = std::io::Error::from_raw_os_error(errno);
            none_if_off(Err(ReadError::from_io(&path, source)))
        };
        assert_eq!(answer(95).unwrap(), None);
        assert!(answer(libc::EIO).is_err());
    }

    proptest! {
        #[test]
        fn written_is_read(some: u64, full: Option<u64>) {
            let mut text = format!("some avg10=0.00 avg60=1.00 avg300=2.00 total={some}\n");
            if let Some(full) = full {
                text.push_str(&format!("full avg10=0.00 avg60=1.00 avg300=2.00 total={full}\n"));
            }
            prop_assert_eq!(totals(&text), Some((Some(some.into()), full.map(u128::from))));
        }

        #[test]
        fn a_number_comes_from_the_text_only(text in "\\PC*|((some|full|total|=|[-0-9 \n]){0,20})") {
            if let Some((some, full)) = totals(&text) {
                for number in [some, full].into_iter().flatten() {
                    prop_assert!(number != 0 || text.contains('0'), "{:?}", text);
                }
            }
        }
    }
}
