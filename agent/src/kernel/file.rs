//! Small kernel files: opened, read once, closed; parsed by functions that take `&str`.

use std::cell::RefCell;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use super::error::ReadError;

/// Larger than any file that the kernel writes as one record; lists go beyond and are read on.
const BUFFER: usize = 16 * 1024;

thread_local! {
    static BYTES: RefCell<Vec<u8>> = RefCell::new(vec![0; BUFFER]);
}

/// Gives the bytes of the file at `path` to `use_bytes`.
///
/// The kernel writes a record whole into a buffer that is large enough, so that a read which leaves
/// room is the end: one system call less a file than asking again. `list` says that the file is one
/// of many records, which come a page at a time, and is read until nothing more comes.
///
/// # Errors
/// If it cannot be read.
fn with_bytes<T>(
    path: &Path,
    list: bool,
    use_bytes: impl FnOnce(&[u8]) -> T,
) -> Result<T, ReadError> {
    let failed = |source| ReadError::from_io(path, source);
    let mut file = File::open(path).map_err(failed)?;
    BYTES.with_borrow_mut(|buffer| {
        let mut length = 0;
        loop {
            if length == buffer.len() {
                buffer.resize(length * 2, 0);
            }
            let room = buffer.get_mut(length..).unwrap_or_default();
            let asked = room.len();
            let read = file.read(room).map_err(failed)?;
            length += read;
            if read == 0 || (!list && read < asked) {
                break;
            }
        }
        Ok(use_bytes(buffer.get(..length).unwrap_or_default()))
    })
}

/// Gives the bytes of a file of one record to `use_bytes`.
///
/// # Errors
/// If it cannot be read.
pub fn bytes<T>(path: &Path, use_bytes: impl FnOnce(&[u8]) -> T) -> Result<T, ReadError> {
    with_bytes(path, false, use_bytes)
}

/// The text of a file of one record, which must be there.
///
/// # Errors
/// If it cannot be read, or is not UTF-8.
pub fn text(path: &Path) -> Result<String, ReadError> {
    with_bytes(path, false, |bytes| as_text(path, bytes))?
}

/// The text of a file of many records, which must be there.
///
/// # Errors
/// If it cannot be read, or is not UTF-8.
pub fn list(path: &Path) -> Result<String, ReadError> {
    with_bytes(path, true, |bytes| as_text(path, bytes))?
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

    proptest! {
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
