//! Open files of a process, told by link text, `fdinfo` and the mount table.
//!
//! The path behind a descriptor is never opened or asked for its status: on a hung network file
//! system that would hang the agent too.

use std::path::PathBuf;

use procfs::process::FDTarget;

use super::error::{Errors, ReadError};
use super::mount::{Mount, MountTables};
use super::process::{Handle, from_procfs};

/// An open file that a user would call a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenFile {
    /// Its path as the process sees it.
    pub path: PathBuf,
    /// The file system it is on.
    pub mount: Mount,
}

/// All descriptors of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Descriptors {
    /// How many there are, of every sort.
    pub count: u64,
    /// Those that are files.
    pub files: Vec<OpenFile>,
}

/// Reads the descriptors of `process`.
///
/// # Errors
/// If the list cannot be read; a descriptor that is closed meanwhile is left out.
pub fn read(
    process: &Handle,
    mounts: &mut MountTables,
    errors: &mut Errors,
) -> Result<Descriptors, ReadError> {
    let path = process.path("fd");
    let list = process.procfs().fd().map_err(|error| from_procfs(&path, error))?;
    let own = mounts.of(process)?;
    let mut found = Descriptors::default();
    for entry in list {
        let entry = match entry.map_err(|error| from_procfs(&path, error)) {
            Ok(entry) => entry,
            // Closed between list and read.
            Err(ReadError::Vanished { .. }) => continue,
            Err(error) => return Err(error),
        };
        found.count += 1;
        let FDTarget::Path(link) = entry.target else {
            continue;
        };
        // A name such as `/memfd:x` or `pipe:[1]` is not a path.
        if !link.is_absolute() {
            continue;
        }
        let name = format!("fdinfo/{}", entry.fd);
        let text = match process.bytes(&name) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(ReadError::Vanished { .. }) => continue,
            Err(error) => return Err(error),
        };
        let Some(info) = parse(&text) else {
            errors.add(ReadError::malformed(&process.path(&name), "flags and mnt_id", &text));
            continue;
        };
        if info.directory {
            continue;
        }
        // A mount that is in no table is one of the kernel's own: memfd, System V memory, aio.
        if let Some(mount) =
            mounts.find(&own, info.mount, errors).filter(|mount| mount.holds_files())
        {
            found.files.push(OpenFile { path: link, mount: mount.clone() });
        }
    }
    Ok(found)
}

#[derive(Debug, PartialEq, Eq)]
struct Info {
    directory: bool,
    mount: u64,
}

fn parse(text: &str) -> Option<Info> {
    let value = |key: &str| text.lines().find_map(|line| Some(line.strip_prefix(key)?.trim()));
    let flags = u64::from_str_radix(value("flags:")?, 8).ok()?;
    // An unnamed temporary file carries the directory's flag and one more.
    let bits = |flag: i32| u64::try_from(flag).ok();
    let directory = flags & bits(nix::libc::O_TMPFILE)? == bits(nix::libc::O_DIRECTORY)?;
    Some(Info { directory, mount: value("mnt_id:")?.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn fdinfo_tells_directories_and_the_mount() {
        let file = "pos:\t0\nflags:\t0100002\nmnt_id:\t29\nino:\t1\n";
        assert_eq!(parse(file), Some(Info { directory: false, mount: 29 }));
        let dir = format!("pos:\t0\nflags:\t0{:o}\nmnt_id:\t29\n", nix::libc::O_DIRECTORY);
        assert_eq!(parse(&dir), Some(Info { directory: true, mount: 29 }));
        let unnamed = format!("pos:\t0\nflags:\t0{:o}\nmnt_id:\t29\n", nix::libc::O_TMPFILE);
        assert_eq!(parse(&unnamed), Some(Info { directory: false, mount: 29 }));
        assert_eq!(parse("pos:\t0\nflags:\t9\nmnt_id:\t29\n"), None);
        assert_eq!(parse("pos:\t0\nflags:\t01\n"), None);
    }

    proptest! {
        #[test]
        fn flags_and_mount_are_read_whatever_stands_around(
            flags in any::<u32>(), mount: u64, more in "[a-z:\t0-9\n]{0,40}",
        ) {
            let text = format!("pos:\t0\nflags:\t0{flags:o}\nmnt_id:\t{mount}\nino:\t1\n{more}");
            let directory = u32::try_from(nix::libc::O_DIRECTORY).unwrap();
            let unnamed = u32::try_from(nix::libc::O_TMPFILE).unwrap() & !directory;
            let expected = flags & directory != 0 && flags & unnamed == 0;
            prop_assert_eq!(parse(&text), Some(Info { directory: expected, mount }));
        }

        #[test]
        fn a_value_that_is_missing_or_no_number_is_nothing(
            bad in "-[0-9]{1,20}|max|[1-7][0-7]{22,30}||8", first: bool,
        ) {
            let (flags, mount) = if first { (bad.as_str(), "29") } else { ("01", bad.as_str()) };
            let text = format!("flags:\t{flags}\nmnt_id:\t{mount}\n");
            // 8 is a mount, and no octal digit.
            let expected = (!first && bad == "8").then_some(Info { directory: false, mount: 8 });
            prop_assert_eq!(parse(&text), expected);
            let gone = if first { "flags:" } else { "mnt_id:" };
            prop_assert_eq!(parse(&text.replace(gone, "other:")), None);
        }

        #[test]
        fn no_text_makes_it_panic(text in "\\PC*|[a-z_:\t0-9\n-]{0,60}") {
            let _any = parse(&text);
        }
    }
}
