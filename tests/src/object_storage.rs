//! Object storage that speaks S3: moto's server, real HTTP, in memory.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::gateway::own_port;
use crate::python::{python, script};
use crate::{http, wait};

/// The bucket that is there.
pub const BUCKET: &str = "jobs";

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
}

impl Drop for ObjectStorage {
    fn drop(&mut self) {
        // Already gone is as good.
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
    }
}
