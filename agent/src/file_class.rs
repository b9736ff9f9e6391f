//! What sort of place an open file is in: home, scratch, a local disk, … By the text of its path
//! and its mount alone: the file system may hang.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::kernel::mount::Mount;

/// The name of the class of files that no rule claims.
pub const OTHER: &str = "other";

/// Which files are in a class.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
pub struct ClassRule {
    /// The name of the class.
    pub name: String,
    /// Those below these directories.
    pub paths: Vec<PathBuf>,
    /// Those on file systems of these types.
    pub mount_types: Vec<String>,
}

/// A class by its place in the list, which [`OTHER`] has not: small, since one is kept for every
/// open file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileClass(u8);

/// All classes and how to tell them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileClasses {
    names: Vec<String>,
    /// The longest first.
    paths: Vec<(PathBuf, FileClass)>,
    mount_types: Vec<(String, FileClass)>,
}

/// A list of classes that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnusableClasses {
    /// There are too many.
    #[error("{0} classes are too many: have at most 255")]
    TooMany(usize),
    /// One has no name.
    #[error("a class has no name: give it one")]
    Unnamed,
    /// Two have one name.
    #[error("class '{0}' is there twice: put its paths and mount types together")]
    Twice(String),
    /// A name is taken.
    #[error("class '{OTHER}' is that of all files which no class claims: choose another name")]
    Taken,
    /// A directory is not told from the root.
    #[error("class '{class}': {} must be an absolute path", path.display())]
    Relative {
        /// The class.
        class: String,
        /// The directory.
        path: PathBuf,
    },
}

impl FileClasses {
    /// The classes of `rules`, and [`OTHER`].
    ///
    /// # Errors
    /// If there are too many, or one makes no sense.
    pub fn new(rules: Vec<ClassRule>) -> Result<Self, UnusableClasses> {
        if rules.len() > usize::from(u8::MAX) {
            return Err(UnusableClasses::TooMany(rules.len()));
        }
        let mut names = HashSet::new();
        for ClassRule { name, paths, .. } in &rules {
            if name.is_empty() {
                return Err(UnusableClasses::Unnamed);
            }
            if name == OTHER {
                return Err(UnusableClasses::Taken);
            }
            if !names.insert(name) {
                return Err(UnusableClasses::Twice(name.clone()));
            }
            if let Some(path) = paths.iter().find(|path| !path.is_absolute()) {
                return Err(UnusableClasses::Relative { class: name.clone(), path: path.clone() });
            }
        }
        Ok(Self::sound(rules))
    }

    fn sound(rules: Vec<ClassRule>) -> Self {
        let mut classes = Self { names: Vec::new(), paths: Vec::new(), mount_types: Vec::new() };
        for (class, rule) in (0..u8::MAX).map(FileClass).zip(rules) {
            classes.names.push(rule.name);
            classes.paths.extend(rule.paths.into_iter().map(|path| (path, class)));
            classes.mount_types.extend(rule.mount_types.into_iter().map(|kind| (kind, class)));
        }
        classes.paths.sort_by_key(|(path, _)| Reverse(path.components().count()));
        classes
    }

    /// The class of the file at `path` on `mount`: that of the longest directory it is below, or
    /// else the first that claims its type of mount.
    #[must_use]
    pub fn of(&self, path: &Path, mount: &Mount) -> FileClass {
        let by_path = || self.paths.iter().find(|(prefix, _)| path.starts_with(prefix));
        let by_type = || self.mount_types.iter().find(|(kind, _)| *kind == mount.kind);
        by_path()
            .map(|(_, class)| *class)
            .or_else(|| by_type().map(|(_, class)| *class))
            .unwrap_or(FileClass(u8::MAX))
    }

    /// The name of `class`.
    #[must_use]
    pub fn name(&self, class: FileClass) -> &str {
        self.names.get(usize::from(class.0)).map_or(OTHER, String::as_str)
    }

    /// Every class with its name, [`OTHER`] last.
    pub fn all(&self) -> impl Iterator<Item = (FileClass, &str)> + '_ {
        let classes = (0..u8::MAX).map(FileClass);
        classes.zip(self.names.iter().map(String::as_str)).chain([(FileClass(u8::MAX), OTHER)])
    }
}

/// The usual places on a cluster.
#[must_use]
pub fn usual() -> Vec<ClassRule> {
    let rule = |name: &str, paths: &[&str], mount_types: &[&str]| ClassRule {
        name: name.to_owned(),
        paths: paths.iter().map(PathBuf::from).collect(),
        mount_types: mount_types.iter().map(ToString::to_string).collect(),
    };
    let disks = ["ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "overlay"];
    vec![
        rule("home", &["/home"], &[]),
        rule("project", &["/project", "/projects"], &[]),
        rule("scratch", &["/scratch"], &[]),
        rule("local", &["/tmp", "/var/tmp", "/localscratch"], &disks),
        rule("tmpfs", &[], &["tmpfs", "ramfs"]),
    ]
}

impl Default for FileClasses {
    fn default() -> Self {
        Self::sound(usual())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(name: &str, paths: &[&str], mount_types: &[&str]) -> ClassRule {
        ClassRule {
            name: name.to_owned(),
            paths: paths.iter().map(PathBuf::from).collect(),
            mount_types: mount_types.iter().map(ToString::to_string).collect(),
        }
    }

    fn class<'a>(classes: &'a FileClasses, path: &str, kind: &str) -> &'a str {
        let mount = Mount { point: "/".into(), kind: kind.to_owned() };
        classes.name(classes.of(Path::new(path), &mount))
    }

    #[test]
    fn the_usual_places_have_their_names() {
        let classes = FileClasses::default();
        assert_eq!(FileClasses::new(usual()).as_ref(), Ok(&classes));
        for (path, kind, expected) in [
            ("/home/anna/x", "nfs4", "home"),
            ("/homes/anna/x", "nfs4", "other"),
            ("/project/p/x", "lustre", "project"),
            ("/projects/p/x", "lustre", "project"),
            ("/scratch/x", "lustre", "scratch"),
            ("/scratch/x (deleted)", "xfs", "scratch"),
            ("/tmp/x", "tmpfs", "local"),
            ("/var/tmp/x", "nfs", "local"),
            ("/var/lib/x", "xfs", "local"),
            ("/usr/lib/libc.so", "overlay", "local"),
            ("/dev/shm/x", "tmpfs", "tmpfs"),
            ("/mnt/x", "fuse.sshfs", "other"),
        ] {
            assert_eq!(class(&classes, path, kind), expected, "{path} on {kind}");
        }
        let names: Vec<&str> = classes.all().map(|(_, name)| name).collect();
        assert_eq!(names, ["home", "project", "scratch", "local", "tmpfs", "other"]);
    }

    #[test]
    fn the_longest_directory_wins_and_paths_win_over_mount_types() {
        let classes = FileClasses::new(vec![
            rule("disk", &["/"], &["lustre"]),
            rule("data", &["/data"], &[]),
            rule("fast", &["/data/fast/"], &["xfs"]),
        ])
        .unwrap();
        assert_eq!(class(&classes, "/data/fast/x", "lustre"), "fast");
        assert_eq!(class(&classes, "/data/faster/x", "xfs"), "data");
        assert_eq!(class(&classes, "/data", "xfs"), "data");
        assert_eq!(class(&classes, "/x", "xfs"), "disk");
    }

    #[test]
    fn the_first_of_two_classes_has_a_mount_type_or_a_directory_that_both_claim() {
        let classes = FileClasses::new(vec![
            rule("a", &["/both"], &["xfs"]),
            rule("b", &["/both"], &["xfs", "nfs"]),
        ])
        .unwrap();
        assert_eq!(class(&classes, "/both/x", "nfs"), "a");
        assert_eq!(class(&classes, "/x", "xfs"), "a");
        assert_eq!(class(&classes, "/x", "nfs"), "b");
        assert_eq!(class(&classes, "/x", "ext4"), "other");
        assert_eq!(class(&FileClasses::new(Vec::new()).unwrap(), "/x", "ext4"), "other");
    }

    #[test]
    fn a_list_that_cannot_be_used_says_why() {
        let many: Vec<ClassRule> = (0..256).map(|n| rule(&n.to_string(), &[], &[])).collect();
        for (rules, words) in [
            (vec![rule("", &[], &[])], "no name"),
            (vec![rule("other", &[], &[])], "choose another name"),
            (vec![rule("a", &[], &[]), rule("a", &[], &[])], "'a' is there twice"),
            (vec![rule("a", &["tmp"], &[])], "'a': tmp must be an absolute path"),
            (many.clone(), "at most 255"),
        ] {
            let message = FileClasses::new(rules).unwrap_err().to_string();
            assert!(message.contains(words), "{message}");
        }
        let most = FileClasses::new(many[..255].to_vec()).unwrap();
        assert_eq!(most.all().count(), 256);
        assert_eq!(class(&most, "/x", "ext4"), "other");
    }
}
