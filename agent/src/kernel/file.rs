//! Small kernel files: opened, read once, closed; parsed by functions that take `&str`.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::error::ReadError;

/// Larger than any file that the kernel writes as one record; lists go beyond and are read on.
const BUFFER: usize = 16 * 1024;

thread_local! {
    static BYTES: RefCell<Vec<u8>> = RefCell::new(vec![0; BUFFER]);
    static OPEN: RefCell<OpenFiles> = RefCell::new(OpenFiles::default());
}

/// Files that this thread keeps open from scan to scan: finding a file by its path costs more than
/// reading it. One that is gone says so, whoever has its path now, and is opened anew.
#[derive(Debug, Default)]
struct OpenFiles {
    most: usize,
    files: HashMap<Box<Path>, Kept>,
}

/// How many files all threads keep open: one that hangs keeps its own.
static KEPT: AtomicUsize = AtomicUsize::new(0);

#[derive(Debug)]
struct Kept {
    file: File,
    /// Whether this scan has read it.
    used: bool,
}

impl Drop for Kept {
    fn drop(&mut self) {
        KEPT.fetch_sub(1, Ordering::Relaxed);
    }
}

/// This thread keeps files open from now on, as long as all threads have no more than `most`.
pub fn keep_open(most: usize) {
    OPEN.with_borrow_mut(|open| open.most = most);
}

/// Ends a scan of this thread: files that it did not read are closed, if it was a `whole` one.
pub fn end_scan(whole: bool) {
    OPEN.with_borrow_mut(|open| {
        if whole {
            open.files.retain(|_, kept| std::mem::take(&mut kept.used));
        }
    });
}

/// Only the kernel's own files answer "gone" when what they were about is gone.
fn is_the_kernels(file: &File) -> bool {
    use nix::sys::statfs::{CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC, PROC_SUPER_MAGIC, fstatfs};
    let kinds = [PROC_SUPER_MAGIC, CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC];
    fstatfs(file).is_ok_and(|found| kinds.contains(&found.filesystem_type()))
}

/// Reads the start of the file at `path` into `room`, from one that is open if there is one.
fn read_start(path: &Path, room: &mut [u8]) -> io::Result<usize> {
    OPEN.with_borrow_mut(|open| {
        if let Some(kept) = open.files.get_mut(path) {
            if let Ok(length) = kept.file.read_at(room, 0) {
                kept.used = true;
                return Ok(length);
            }
            open.files.remove(path);
        }
        let file = File::open(path)?;
        let length = file.read_at(room, 0)?;
        if KEPT.load(Ordering::Relaxed) < open.most && is_the_kernels(&file) {
            KEPT.fetch_add(1, Ordering::Relaxed);
            open.files.insert(path.into(), Kept { file, used: true });
        }
        Ok(length)
    })
}

/// The text of a file of many records, which come a page at a time: it is read until nothing more
/// comes. It is opened each time: the kernel keeps the list of an open `cgroup.procs` (v1) as it was.
///
/// # Errors
/// If it cannot be read, or is not UTF-8.
pub fn list(path: &Path) -> Result<String, ReadError> {
    let failed = |source| ReadError::from_io(path, source);
    let mut file = File::open(path).map_err(failed)?;
    BYTES.with_borrow_mut(|buffer| {
        let mut length = 0;
        loop {
            if length == buffer.len() {
                buffer.resize(length * 2, 0);
            }
            let room = buffer.get_mut(length..).unwrap_or_default();
            let read = file.read(room).map_err(failed)?;
            length += read;
            if read == 0 {
                break;
            }
        }
        as_text(path, buffer.get(..length).unwrap_or_default())
    })
}

/// Gives the bytes of a file of one record to `use_bytes`.
///
/// # Errors
/// If it cannot be read.
pub fn bytes<T>(path: &Path, use_bytes: impl FnOnce(&[u8]) -> T) -> Result<T, ReadError> {
    BYTES.with_borrow_mut(|buffer| {
        loop {
            let length =
                read_start(path, buffer).map_err(|source| ReadError::from_io(path, source))?;
            // The kernel writes a record whole into a buffer that is large enough.
            if length < buffer.len() {
                return Ok(use_bytes(buffer.get(..length).unwrap_or_default()));
            }
            buffer.resize(length * 2, 0);
        }
    })
}

/// The text of a file of one record, which must be there.
///
/// # Errors
/// If it cannot be read, or is not UTF-8.
pub fn text(path: &Path) -> Result<String, ReadError> {
    bytes(path, |bytes| as_text(path, bytes))?
}

fn as_text(path: &Path, bytes: &[u8]) -> Result<String, ReadError> {
    std::str::from_utf8(bytes)
        .map(str::to_owned)
        .map_err(|_| ReadError::malformed(path, "text", &String::from_utf8_lossy(bytes)))
}

/// The text of a file that older kernels or other settings do not have: `None` if it is not there.
///
/// # Errors
/// If it is there and cannot be read.
pub fn optional_text(path: &Path) -> Result<Option<String>, ReadError> {
    match text(path) {
        Ok(text) => Ok(Some(text)),
        Err(ReadError::Vanished { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// A file that holds one number.
///
/// # Errors
/// If it is there and is not a number.
pub fn optional_number(path: &Path) -> Result<Option<u64>, ReadError> {
    optional_text(path)?.map(|text| number(path, &text)).transpose()
}

/// One number.
///
/// # Errors
/// If `text` is anything else.
pub fn number(path: &Path, text: &str) -> Result<u64, ReadError> {
    text.trim().parse().map_err(|_| ReadError::malformed(path, "a number", text))
}

/// The value of `key` in lines of the form `key value`; `None` if the key is not there.
///
/// # Errors
/// If the value is not a number.
pub fn keyed(path: &Path, text: &str, key: &str) -> Result<Option<u64>, ReadError> {
    text.lines()
        .find_map(|line| line.strip_prefix(key)?.strip_prefix(' '))
        .map(|value| number(path, value))
        .transpose()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_key_is_found_whole_and_its_absence_is_not_zero() {
        let path = Path::new("cpu.stat");
        let text = "usage_usec 12\nuser_usec 7\n";
        assert_eq!(keyed(path, text, "user_usec").unwrap(), Some(7));
        assert_eq!(keyed(path, text, "usage").unwrap(), None);
        assert_eq!(keyed(path, text, "nr_throttled").unwrap(), None);
    }

    #[test]
    fn a_value_that_is_no_number_names_file_and_text() {
        let path = Path::new("/sys/fs/cgroup/memory.stat");
        for bad in ["anon max", "anon -1", "anon ", "anon 18446744073709551616"] {
            let message = keyed(path, bad, "anon").unwrap_err().to_string();
            assert!(message.contains("/sys/fs/cgroup/memory.stat"), "{message}");
            assert!(message.contains("a number"), "{message}");
        }
    }

    #[test]
    fn a_missing_optional_file_is_absent_and_a_directory_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(optional_number(&dir.path().join("memory.peak")).unwrap(), None);
        assert!(optional_number(dir.path()).is_err());
    }

    #[test]
    fn a_file_longer_than_the_buffer_is_read_whole_either_way() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("cgroup.procs");
        let long: String = (0..20_000).map(|pid| format!("{pid}\n")).collect();
        std::fs::write(&path, &long).unwrap();
        assert_eq!(list(&path).unwrap(), long);
        assert_eq!(text(&path).unwrap(), long);
        std::fs::write(&path, "").unwrap();
        assert_eq!(list(&path).unwrap(), "");
    }

    #[test]
    fn a_key_that_begins_another_is_not_taken_for_it() {
        let table = [
            ("oom_kill_disable 1\nunder_oom 0\noom_kill 3\n", "oom_kill", Some(3)),
            ("oom_kill_disable 1\nunder_oom 0\n", "oom_kill", None),
            ("low 0\nhigh 0\nmax 7\noom 1\noom_kill 2\n", "max", Some(7)),
            ("low 0\nhigh 0\nmax 7\noom 1\noom_kill 2\n", "oom", Some(1)),
            ("populated 1\nfrozen 0\n", "frozen", Some(0)),
            ("populated 1\n", "frozen", None),
            (
                "nr_periods 4\nnr_throttled 0\nthrottled_time 18446744073709551615\n",
                "throttled_time",
                Some(u64::MAX),
            ),
            ("", "max", None),
        ];
        for (text, key, expected) in table {
            assert_eq!(keyed(Path::new("f"), text, key).unwrap(), expected, "{key} in {text:?}");
        }
    }

    proptest! {
        #[test]
        fn a_key_has_the_value_that_was_written(
            lines in proptest::collection::btree_map("[a-z_]{1,12}", 0..=u64::MAX, 0..8),
            asked in "[a-z_]{1,12}",
        ) {
            let text: String = lines.iter().map(|(key, value)| format!("{key} {value}\n")).collect();
            let value = |key: &str| keyed(Path::new("f"), &text, key).unwrap();
            for (key, written) in &lines {
                prop_assert_eq!(value(key), Some(*written));
            }
            prop_assert_eq!(value(&asked), lines.get(&asked).copied());
        }

        #[test]
        fn no_text_makes_it_panic_or_makes_a_zero_up(text in "\\PC*|(max|oom_kill|[-0-9 \n]){0,20}") {
            match keyed(Path::new("f"), &text, "max") {
                Ok(None) => {}
                Ok(Some(0)) => prop_assert!(text.contains('0')),
                Ok(Some(_)) | Err(_) => prop_assert!(text.contains("max ")),
            }
        }

        #[test]
        fn a_key_gives_its_number_or_an_error_and_another_key_nothing(
            value: u64, bad in "-[0-9]{1,20}|max|[1-9][0-9]{20,30}|[a-z]{1,5}|[0-9] [0-9]",
            before in "([a-z]{1,6}_x [0-9]{1,5}\n){0,3}",
        ) {
            let path = Path::new("memory.stat");
            let text = format!("{before}anon {value}\nanon_thp 1\n");
            prop_assert_eq!(keyed(path, &text, "anon").unwrap(), Some(value));
            prop_assert_eq!(keyed(path, &text, "ano").unwrap(), None);
            let odd = format!("{before}anon {bad}\n");
            prop_assert!(keyed(path, &odd, "anon").is_err());
        }
    }
}
