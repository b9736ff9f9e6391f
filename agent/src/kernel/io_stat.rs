//! `io.stat` of cgroup v2: what a cgroup read from and wrote to block devices.
//!
//! `8:0 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=0 dios=0`, a line a device, some with more keys. A
//! device that has done nothing yet stands there with no keys, and by some kernels without a line end:
//! `8:16 8:0 rbytes=…`.

use std::path::Path;

use super::error::ReadError;
use super::file;

/// What went to and came from block devices, over all of them.
///
/// A device that lies on another (LVM, md, dm-crypt) is a device of its own to the kernel, so that
/// I/O through it counts there and below.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockIo {
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Read operations.
    pub reads: u64,
    /// Write operations.
    pub writes: u64,
}

/// Reads an `io.stat`; `None` if the I/O controller is not on for this cgroup.
///
/// # Errors
/// If it is there and cannot be read, or its text is odd.
pub fn read(path: &Path) -> Result<Option<BlockIo>, ReadError> {
    file::optional_text(path)?.map(|text| parse(path, &text)).transpose()
}

/// The sum over the lines of `text`, where no line is a true zero; `path` is for messages.
///
/// # Errors
/// If a line begins with no device, a count is no number, or a device has some counts only.
pub fn parse(path: &Path, text: &str) -> Result<BlockIo, ReadError> {
    let mut sum = BlockIo::default();
    for line in text.lines().filter(|line| !line.is_empty()) {
        let Some([read_bytes, write_bytes, reads, writes]) = counts(path, line)? else { continue };
        sum.read_bytes = sum.read_bytes.saturating_add(read_bytes);
        sum.write_bytes = sum.write_bytes.saturating_add(write_bytes);
        sum.reads = sum.reads.saturating_add(reads);
        sum.writes = sum.writes.saturating_add(writes);
    }
    Ok(sum)
}

/// The four counts of a line; `None` if its devices have done nothing yet.
fn counts(path: &Path, line: &str) -> Result<Option<[u64; 4]>, ReadError> {
    const KEYS: [&str; 4] = ["rbytes", "wbytes", "rios", "wios"];
    let odd = || ReadError::malformed(path, "a device and its counts", line);
    let mut fields = line.split(' ').filter(|field| !field.is_empty()).peekable();
    if !fields.peek().is_some_and(|first| is_device(first)) {
        return Err(odd());
    }
    let mut found = [None; 4];
    for field in fields {
        let Some((key, value)) = field.split_once('=') else {
            if is_device(field) {
                continue;
            }
            return Err(odd());
        };
        if let Some((_, slot)) = KEYS.iter().zip(&mut found).find(|(known, _)| **known == key)
            && slot.replace(file::number(path, value)?).is_some()
        {
            return Err(odd());
        }
    }
    match found {
        [None, None, None, None] => Ok(None),
        [Some(a), Some(b), Some(c), Some(d)] => Ok(Some([a, b, c, d])),
        _ => Err(odd()),
    }
}

/// `MAJOR:MINOR`, or what the kernel writes for a disk without a number (NVMe multipath).
fn is_device(field: &str) -> bool {
    let number = |digits: &str| digits.parse::<u32>().is_ok();
    field == "(unknown)"
        || field.split_once(':').is_some_and(|(major, minor)| number(major) && number(minor))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PATH: &str = "/sys/fs/cgroup/job_1/io.stat";

    fn sums(text: &str) -> Option<[u64; 4]> {
        let io = parse(Path::new(PATH), text).ok()?;
        Some([io.read_bytes, io.write_bytes, io.reads, io.writes])
    }

    #[test]
    fn counts_are_summed_over_devices() {
        let disk = "8:0 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=9 dios=9\n";
        let other = "259:1 wios=40 rios=30 wbytes=20 rbytes=10\n";
        let table = [
            (String::new(), [0; 4]),
            (disk.to_owned(), [1, 2, 3, 4]),
            (format!("{disk}{other}"), [11, 22, 33, 44]),
            (format!("8:16 \n{disk}"), [1, 2, 3, 4]),
            (format!("8:16 8:32 {disk}8:48 "), [1, 2, 3, 4]),
            (format!("(unknown) {disk}"), [1, 2, 3, 4]),
            (disk.replace(" dbytes", " cost.vrate=100.00 cost.usage=5 dbytes"), [1, 2, 3, 4]),
            ("8:0 cost.usage=5\n".to_owned(), [0; 4]),
            // Torn: a cgroup that is being made.
            ("252:0 ".to_owned(), [0; 4]),
            (disk.replace("=1 ", "=18446744073709551615 ") + other, [u64::MAX, 22, 33, 44]),
        ];
        for (text, expected) in table {
            assert_eq!(sums(&text), Some(expected), "{text:?}");
        }
    }

    #[test]
    fn what_is_not_understood_is_an_error_that_names_the_file_and_never_zero() {
        let good = "8:0 rbytes=1 wbytes=2 rios=3 wios=4\n";
        assert!(sums(good).is_some());
        assert_eq!(sums(&format!("\n{good}\n")), sums(good));
        let mut bad: Vec<String> = ["max", "-1", "", "x", "1.5", "18446744073709551616"]
            .map(|number| good.replace("=3", &format!("={number}")))
            .to_vec();
        bad.extend(["rbytes=1 ", "wios=4", "8:0 "].map(|part| good.replace(part, "")));
        bad.extend(["8:0", "rios=3"].map(|part| good.replace(part, "garbage")));
        bad.push(good.replace("rios=3", "rios=3 rios=3"));
        for bad in bad {
            let message = parse(Path::new(PATH), &bad).unwrap_err().to_string();
            assert!(message.starts_with(PATH), "{bad:?}: {message}");
        }
    }

    #[test]
    fn a_controller_that_is_off_is_absent_and_an_empty_file_is_zero() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("io.stat");
        assert_eq!(read(&path).unwrap(), None);
        std::fs::write(&path, "").unwrap();
        assert_eq!(read(&path).unwrap(), Some(BlockIo::default()));
    }

    proptest! {
        #[test]
        fn the_sum_is_that_of_the_lines(
            lines in proptest::collection::vec(proptest::array::uniform4(0..=u64::MAX), 0..6),
        ) {
            let mut expected = [0_u64; 4];
            let mut text = String::new();
            for (minor, [a, b, c, d]) in lines.into_iter().enumerate() {
                text += &format!("8:{minor} rbytes={a} wbytes={b} rios={c} wios={d} dios=1\n");
                for (sum, one) in expected.iter_mut().zip([a, b, c, d]) {
                    *sum = sum.saturating_add(one);
                }
            }
            prop_assert_eq!(sums(&text), Some(expected));
        }

        #[test]
        fn never_panics(text in "\\PC*|((8:0|rbytes|wbytes|rios|wios|=|[-0-9 \n]){0,30})") {
            if let Some(io) = sums(&text) {
                prop_assert!(io == [0; 4] || text.contains("rbytes="), "{:?}", text);
            }
        }
    }
}
