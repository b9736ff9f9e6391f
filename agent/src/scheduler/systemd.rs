//! Any scheduler that gives each job a directory of its own, such as a systemd scope, told by a
//! pattern: `system.slice/batch-{job}.scope`, `batch.slice/user-{uid}/job-{job}`.

use std::str::FromStr;

use steward_common::id::{JobId, Uid};
use steward_common::slurm::cgroup_path::{JobDir, Version};

use super::{Directory, Scheduler, Share};

/// Directory names from the mount down, each plain, `*`, or with one placeholder in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern(Vec<Name>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Name {
    Plain(String),
    Any,
    Job(String, String),
    Uid(String, String),
}

/// What a name holds.
enum Held {
    Nothing,
    Job(JobId),
    Uid(Uid),
}

impl Name {
    fn parse(text: &str) -> Result<Self, String> {
        let around = |placeholder: &str| {
            let (before, after) = text.split_once(placeholder)?;
            Some((before.to_owned(), after.to_owned()))
        };
        let name = match (around("{job}"), around("{uid}")) {
            (Some((before, after)), None) => Self::Job(before, after),
            (None, Some((before, after))) => Self::Uid(before, after),
            (None, None) if text == "*" => Self::Any,
            (None, None) => Self::Plain(text.to_owned()),
            (Some(_), Some(_)) => return Err(format!("{text:?} has two placeholders")),
        };
        let rest = match &name {
            Self::Job(before, after) | Self::Uid(before, after) => [before.as_str(), after],
            _ => [text, ""],
        };
        let plain = name == Self::Any || !rest.join("").contains(['{', '}', '*']);
        let climbs = matches!(text, "" | "." | "..");
        if plain && !climbs { Ok(name) } else { Err(format!("{text:?} is no directory name")) }
    }

    fn read(&self, name: &str) -> Option<Held> {
        let inner = |before: &str, after: &str| {
            name.strip_prefix(before)?.strip_suffix(after).map(str::to_owned)
        };
        match self {
            Self::Any => Some(Held::Nothing),
            Self::Plain(own) => (own == name).then_some(Held::Nothing),
            Self::Job(before, after) => inner(before, after)?.parse().ok().map(Held::Job),
            Self::Uid(before, after) => inner(before, after)?.parse().ok().map(Held::Uid),
        }
    }
}

impl FromStr for Pattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let expected = |why: &str| {
            format!(
                "expected a path such as system.slice/batch-{{job}}.scope, found {text:?}: {why}"
            )
        };
        let names: Result<Vec<Name>, String> =
            text.trim_start_matches('/').split('/').map(Name::parse).collect();
        let names = names.map_err(|why| expected(&why))?;
        let jobs = names.iter().filter(|name| matches!(name, Name::Job(..))).count();
        let last = matches!(names.last(), Some(Name::Job(..)));
        if jobs != 1 || !last {
            return Err(expected("the last name, and no other, must hold {job}"));
        }
        Ok(Self(names))
    }
}

impl Scheduler for Pattern {
    fn directory(&self, _version: Version, path: &[&str]) -> Directory {
        if path.len() > self.0.len() {
            return Directory::Foreign;
        }
        let mut owner = None;
        for (pattern, name) in self.0.iter().zip(path) {
            match pattern.read(name) {
                Some(Held::Job(job)) => return Directory::Job(JobDir::Id(job), owner),
                Some(Held::Uid(uid)) => owner = Some(uid),
                Some(Held::Nothing) => {}
                None => return Directory::Foreign,
            }
        }
        if path.len() + 1 == self.0.len() { Directory::Scope(None) } else { Directory::Above }
    }

    fn share(&self, _version: Version, _path: &[&str]) -> Option<Share> {
        Some(Share::Job)
    }

    fn keeps_idle_jobs(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory(pattern: &str, path: &str) -> Directory {
        let pattern: Pattern = pattern.parse().unwrap();
        pattern.directory(Version::V2, &path.split('/').collect::<Vec<_>>())
    }

    fn job(id: u32, uid: Option<u32>) -> Directory {
        Directory::Job(JobDir::Id(JobId::new(id).unwrap()), uid.map(Uid::new))
    }

    #[test]
    fn a_directory_that_fits_is_a_job_with_its_owner() {
        let simple = "system.slice/batch-{job}.scope";
        for (path, expected) in [
            ("system.slice", Directory::Scope(None)),
            ("system.slice/batch-17.scope", job(17, None)),
            ("system.slice/batch-x.scope", Directory::Foreign),
            ("system.slice/batch-0.scope", Directory::Foreign),
            ("system.slice/cron.service", Directory::Foreign),
            ("user.slice", Directory::Foreign),
            ("system.slice/batch-17.scope/below", Directory::Foreign),
        ] {
            assert_eq!(directory(simple, path), expected, "{path}");
        }
        let owned = "/batch.slice/*/user-{uid}/{job}";
        assert_eq!(directory(owned, "batch.slice"), Directory::Above);
        assert_eq!(directory(owned, "batch.slice/a/user-1001"), Directory::Scope(None));
        assert_eq!(directory(owned, "batch.slice/a/user-1001/5"), job(5, Some(1001)));
        assert_eq!(directory(owned, "batch.slice/a/user-x/5"), Directory::Foreign);
    }

    #[test]
    fn what_is_no_pattern_is_refused() {
        for bad in
            ["", "/", "a/b", "{job}/x", "a/{job}{uid}", "{job}/{job}", "../{job}", "a*/{job}"]
        {
            let message = bad.parse::<Pattern>().unwrap_err();
            assert!(
                message.contains(&format!("{bad:?}")) && message.contains("{job}"),
                "{message}"
            );
        }
    }
}
