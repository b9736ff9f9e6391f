//! Small kernel files: read whole, parsed by functions that take `&str`.

use std::fs;
use std::path::Path;

use super::error::ReadError;

/// The text of a file that must be there.
///
/// # Errors
/// If it cannot be read, or is not UTF-8.
pub fn text(path: &Path) -> Result<String, ReadError> {
    fs::read_to_string(path).map_err(|source| ReadError::from_io(path, source))
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
}
