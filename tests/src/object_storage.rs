//! Object storage that speaks S3: moto's server, real HTTP, in memory.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::gateway::own_port;
use crate::python::{python, script};
use crate::{http, wait};

/// The bucket that is there.
pub const BUCKET: &str = "jobs";

/// Prints what differs between two archives, apart from when they were made.
const COMPARE: &str = r#"
import glob, os, re, sys
import polars as pl

# In a bucket the names of raw files have the mark of their writer.
def names(root):
    found = (os.path.relpath(path, root) for path in glob.glob(root + "/**", recursive=True) if os.path.isfile(path))
    return sorted(re.sub(r"/([0-9]{8})-[0-9a-f]{8}-", r"/\1-", name) for name in found if name != ".lock")

def rows(root, layer):
    frame = pl.read_parquet(root + f"/{layer}/**/*.parquet", hive_partitioning=False).drop("collected_at")
    return frame.sort([name for name, kind in frame.schema.items() if not kind.is_nested()])

a, b, *layers = sys.argv[1:]
if "names" in layers and names(a) != names(b):
    print("names", names(a), names(b))
for layer in ["processed"] + (["raw"] if "raw" in layers else []):
    one, other = rows(a, layer), rows(b, layer)
    if len(one) == 0 or not one.equals(other):
        print(layer, len(one), len(other))
"#;

/// Where an archive is in it.
#[must_use]
pub fn place(prefix: &str) -> String {
    format!("s3://{BUCKET}/{prefix}")
}

/// A server with one bucket; dropping it ends it.
#[derive(Debug)]
pub struct ObjectStorage {
    url: String,
    child: Child,
}

impl ObjectStorage {
    /// Starts one on a free port of loopback.
    ///
    /// # Panics
    /// If it does not come up.
    pub fn start() -> Self {
        let port = own_port();
        let child = Command::new(python())
            .args(["-m", "moto.server", "-H", "127.0.0.1", "-p", &port.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("moto: {error}"));
        let storage = Self { url: format!("http://127.0.0.1:{port}"), child };
        wait::until_true("object storage answers", Duration::from_secs(120), || {
            let bucket = format!("{}/{BUCKET}", storage.url);
            http::client().put(bucket).send().is_ok_and(|answer| answer.status().is_success())
        });
        storage
    }

    /// Its address.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The lines of a configuration that lead here; files with the keys are made in `dir`.
    ///
    /// # Panics
    /// If they cannot be written.
    pub fn settings(&self, dir: &Path) -> String {
        let file = |name: &str| {
            let path = dir.join(name);
            std::fs::write(&path, "testing\n").unwrap_or_else(|error| panic!("{name}: {error}"));
            path
        };
        let (access, secret) = (file("access-key"), file("secret-key"));
        format!(
            "[archive.s3]\nendpoint = {:?}\nregion = \"us-east-1\"\nallow_http = true\n\
             access_key_file = {access:?}\nsecret_key_file = {secret:?}\n",
            self.url
        )
    }

    /// Runs a script that has the bucket of that name as `bucket`; gives what it printed.
    ///
    /// # Panics
    /// If it fails.
    pub fn script(&self, text: &str, args: &[&str], dir: &Path) -> String {
        let begin = format!(
            "import boto3, sys\nbucket = boto3.resource('s3', endpoint_url={:?}, \
             region_name='us-east-1', aws_access_key_id='testing', \
             aws_secret_access_key='testing').Bucket({BUCKET:?})\n",
            self.url
        );
        script(&(begin + text), args, dir, &[])
    }

    /// Copies all objects below a prefix into a directory.
    ///
    /// # Panics
    /// If it fails.
    pub fn fetch(&self, prefix: &str, to: &Path) {
        let text = "import os\nprefix, to = sys.argv[1:]\n\
                    for one in bucket.objects.filter(Prefix=prefix + '/'):\n\
                    \x20   path = os.path.join(to, one.key[len(prefix) + 1:])\n\
                    \x20   os.makedirs(os.path.dirname(path), exist_ok=True)\n\
                    \x20   bucket.download_file(one.key, path)\n";
        std::fs::create_dir_all(to).unwrap_or_else(|error| panic!("{}: {error}", to.display()));
        self.script(text, &[prefix, &to.display().to_string()], to);
    }

    /// What differs between the rows of the archive in the directory `archive` of `dir` and of the one
    /// here: those of `processed`, with `raw` also those, and with `names` the names of files.
    ///
    /// # Panics
    /// If they cannot be read.
    pub fn differences(&self, dir: &Path, prefix: &str, what: &[&str]) -> String {
        let copy = dir.join(format!("copy-{prefix}"));
        match std::fs::remove_dir_all(&copy) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                panic!("{}: {error}", copy.display())
            }
            _ => {}
        }
        self.fetch(prefix, &copy);
        let places = [dir.join("archive"), copy].map(|place| place.display().to_string());
        let [one, other] = &places;
        script(COMPARE, &[&[one.as_str(), other.as_str()], what].concat(), dir, &[])
    }
}

impl Drop for ObjectStorage {
    fn drop(&mut self) {
        // Already gone is as good.
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
    }
}
