//! Values of settings that are more than text.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use jiff::tz::TimeZone;

/// Where the archive is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// A directory of this machine.
    Directory(PathBuf),
    /// Object storage that speaks S3.
    S3 {
        /// The bucket.
        bucket: String,
        /// What the names of all objects begin with; may be empty, has no slash at either end.
        prefix: String,
    },
}

impl FromStr for Location {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refuse = || {
            Err(format!(
                "expected a directory or an address such as s3://bucket/prefix, found {text:?}"
            ))
        };
        match text.split_once("://") {
            None if text.is_empty() => refuse(),
            None => Ok(Self::Directory(text.into())),
            Some(("s3", rest)) => {
                let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
                if bucket.is_empty() {
                    return refuse();
                }
                let prefix = prefix.trim_matches('/').to_owned();
                Ok(Self::S3 { bucket: bucket.to_owned(), prefix })
            }
            Some(_) => refuse(),
        }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory(path) => path.display().fmt(f),
            Self::S3 { bucket, prefix } if prefix.is_empty() => write!(f, "s3://{bucket}"),
            Self::S3 { bucket, prefix } => write!(f, "s3://{bucket}/{prefix}"),
        }
    }
}

/// Who may do what with a file, in octal as chmod takes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mode(pub u32);

impl FromStr for Mode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match u32::from_str_radix(text, 8) {
            Ok(bits) if bits <= 0o777 && text.len() >= 3 && !text.starts_with('+') => {
                Ok(Self(bits))
            }
            _ => Err(format!("expected permissions such as \"0666\" or \"0660\", found {text:?}")),
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04o}", self.0)
    }
}

/// A time zone by its name in the IANA database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zone(pub TimeZone);

impl FromStr for Zone {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        TimeZone::get(text).map(Self).map_err(|_| {
            format!(
                "expected a time zone such as \"Europe/Berlin\" or \"UTC\", found {text:?}: is it \
                 in /usr/share/zoneinfo (package tzdata)?"
            )
        })
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.iana_name().unwrap_or("a zone without a name"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_is_a_directory_or_a_bucket() {
        for (text, shown) in [
            ("/var/lib/steward/archive", "/var/lib/steward/archive"),
            ("data", "data"),
            ("s3://jobs", "s3://jobs"),
            ("s3://jobs/a/b/", "s3://jobs/a/b"),
        ] {
            assert_eq!(text.parse::<Location>().unwrap().to_string(), shown);
        }
        for bad in ["", "s3://", "s3:///a", "http://a/b", "gs://a"] {
            assert!(bad.parse::<Location>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn permissions_are_octal() {
        assert_eq!("0660".parse::<Mode>().unwrap(), Mode(0o660));
        assert_eq!(Mode(0o666).to_string(), "0666");
        for bad in ["", "6", "0888", "1777", "rw-", "+666"] {
            assert!(bad.parse::<Mode>().is_err(), "{bad:?}");
        }
    }
}
