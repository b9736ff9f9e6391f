//! A PostgreSQL of a test's own, which it may stop and start.

use std::os::unix::fs::{PermissionsExt, chown};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, User};
use tempfile::TempDir;

use crate::gateway::own_port;
use crate::wait;

/// The password of [`Postgres::USER`].
const PASSWORD: &str = "s3cret/?#:@ é";

/// A real server on a port of loopback; dropping it ends it. It wants passwords.
#[derive(Debug)]
pub struct Postgres {
    dir: TempDir,
    port: u16,
    child: Option<Child>,
}

impl Postgres {
    /// Who owns the database.
    pub const USER: &str = "steward";
    /// The database that is there.
    pub const DATABASE: &str = "steward";

    /// Starts one with an empty database.
    ///
    /// # Panics
    /// If it does not come up.
    pub fn start() -> Self {
        let dir = tempfile::Builder::new().prefix("steward-postgres-").tempdir_in("/var/tmp");
        let dir = dir.unwrap_or_else(|error| panic!("/var/tmp: {error}"));
        let owner = owner();
        let give = |path: PathBuf| {
            chown(&path, Some(owner.uid.as_raw()), Some(owner.gid.as_raw()))
                .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        };
        let open = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(dir.path(), open).unwrap_or_else(|error| panic!("{error}"));
        give(dir.path().to_owned());
        let secret = dir.path().join("password");
        std::fs::write(&secret, format!("{PASSWORD}\n")).unwrap_or_else(|error| panic!("{error}"));
        give(secret.clone());
        let mut postgres = Self { dir, port: own_port(), child: None };
        let made = postgres
            .command("initdb")
            .args(["--auth=scram-sha-256", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync"])
            .args(["-U", Self::USER])
            .arg("--pwfile")
            .arg(secret)
            .arg("-D")
            .arg(postgres.data())
            .output()
            .unwrap_or_else(|error| panic!("initdb: {error}"));
        assert!(made.status.success(), "initdb: {}", String::from_utf8_lossy(&made.stderr));
        postgres.resume();
        postgres.sql("postgres", &format!("CREATE DATABASE {}", Self::DATABASE));
        postgres
    }

    /// Its address, as a setting.
    pub fn url(&self) -> String {
        format!("postgres://{}@127.0.0.1:{}/{}", Self::USER, self.port, Self::DATABASE)
    }

    /// The file with the password.
    pub fn password_file(&self) -> PathBuf {
        self.dir.path().join("password")
    }

    /// The lines of a configuration that lead here.
    pub fn settings(&self) -> String {
        format!("[store]\nurl = {:?}\npassword_file = {:?}\n", self.url(), self.password_file())
    }

    /// The password, to look for where it must not be.
    pub fn password(&self) -> &'static str {
        PASSWORD
    }

    /// Ends it at once, as a crash would.
    ///
    /// # Panics
    /// If it cannot be ended.
    pub fn stop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // Its children end with it; SIGKILL would leave them.
            let pid = Pid::from_raw(i32::try_from(child.id()).unwrap_or_else(|e| panic!("{e}")));
            kill(pid, Signal::SIGQUIT).unwrap_or_else(|error| panic!("postgres: {error}"));
            child.wait().unwrap_or_else(|error| panic!("postgres: {error}"));
        }
    }

    /// Starts it again with what it has.
    ///
    /// # Panics
    /// If it does not come up.
    pub fn resume(&mut self) {
        let log = std::fs::File::create(self.dir.path().join("log"))
            .unwrap_or_else(|error| panic!("log: {error}"));
        let mut command = self.command("postgres");
        command.arg("-D").arg(self.data()).arg("-k").arg(self.dir.path());
        command.args(["-c", "listen_addresses=127.0.0.1", "-c", "fsync=off"]);
        command.args(["-p", &self.port.to_string()]);
        let child = command.stderr(log).spawn().unwrap_or_else(|error| panic!("postgres: {error}"));
        self.child = Some(child);
        wait::until_true("PostgreSQL answers", Duration::from_secs(60), || {
            self.psql("postgres", "SELECT 1").status.success()
        });
    }

    /// What a statement gives in a database: fields between `|`, a row per line.
    ///
    /// # Panics
    /// If it fails.
    pub fn sql(&self, database: &str, text: &str) -> String {
        let done = self.psql(database, text);
        assert!(done.status.success(), "{text}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8_lossy(&done.stdout).trim_end().to_owned()
    }

    fn psql(&self, database: &str, text: &str) -> std::process::Output {
        Command::new("psql")
            .args(["-X", "-A", "-t", "-w", "-h", "127.0.0.1", "-U", Self::USER, "-d", database])
            .args(["-p", &self.port.to_string(), "-c", text])
            .env("PGPASSWORD", PASSWORD)
            .env("PGCONNECT_TIMEOUT", "5")
            .stdin(Stdio::null())
            .output()
            .unwrap_or_else(|error| panic!("psql: {error}"))
    }

    fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    /// A program of the server as its own user: it does not run as root.
    fn command(&self, name: &str) -> Command {
        use std::os::unix::process::CommandExt;
        let owner = owner();
        let mut command = Command::new(programs().join(name));
        command.uid(owner.uid.as_raw()).gid(owner.gid.as_raw()).current_dir(self.dir.path());
        command.stdin(Stdio::null()).stdout(Stdio::null()).env_remove("PGDATA");
        command
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.stop();
    }
}

fn owner() -> User {
    let found = User::from_name("postgres").unwrap_or_else(|error| panic!("postgres: {error}"));
    found.unwrap_or_else(|| panic!("no user postgres: install Debian's postgresql"))
}

/// Where Debian keeps the newest server's programs.
fn programs() -> PathBuf {
    let versions = std::fs::read_dir("/usr/lib/postgresql");
    let versions = versions.unwrap_or_else(|error| panic!("/usr/lib/postgresql: {error}"));
    let newest = versions
        .flatten()
        .max_by_key(|entry| entry.file_name().to_string_lossy().parse::<u32>().unwrap_or_default());
    newest.unwrap_or_else(|| panic!("no PostgreSQL is installed")).path().join("bin")
}
