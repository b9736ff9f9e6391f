//! The bank as the real program, with a store of a test's own, on the testbed's Slurm.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;

use crate::service::program;
use crate::slurm;
use crate::testbed::Testbed;
use crate::wait;

/// A bank.
#[derive(Debug)]
pub struct Bank {
    /// Its files.
    pub dir: tempfile::TempDir,
    config: PathBuf,
    store: String,
    slurm: String,
}

/// How a command ended.
#[derive(Debug)]
pub struct Ended {
    /// Its exit code; -1 if a signal ended it.
    pub code: i32,
    /// What it printed.
    pub text: String,
    /// What it complained about.
    pub complaint: String,
}

impl From<Output> for Ended {
    fn from(output: Output) -> Ended {
        Ended {
            code: output.status.code().unwrap_or(-1),
            text: String::from_utf8_lossy(&output.stdout).into_owned(),
            complaint: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

impl Bank {
    /// One with these lines in `[bank]`.
    ///
    /// # Panics
    /// If its files cannot be written.
    pub fn new(settings: &str) -> Bank {
        Bank::with_store(settings, "")
    }

    /// The same with these lines in `[store]`.
    ///
    /// # Panics
    /// If its files cannot be written.
    pub fn with_store(settings: &str, store: &str) -> Bank {
        // Others than root use it, too.
        let dir = crate::shared::directory();
        let config = dir.path().join("steward.toml");
        let bank = Bank { dir, config, store: store.to_owned(), slurm: String::new() };
        bank.configure(settings);
        bank
    }

    /// From now on a script stands before sacctmgr: it runs in the bank's directory, and `"$@"` is the call.
    ///
    /// # Panics
    /// If its files cannot be written.
    pub fn intercept(&mut self, settings: &str, script: &str) {
        let path = self.dir.path().join("sacctmgr");
        let text = format!("cd {:?}\n{script}\n", self.dir.path());
        std::fs::write(&path, text).expect("the script");
        self.slurm = format!("sacctmgr = [\"sh\", {path:?}]");
        self.configure(settings);
    }

    /// Other lines in `[bank]`; other sections may follow them.
    ///
    /// # Panics
    /// If they cannot be written.
    pub fn configure(&self, settings: &str) {
        let (state, archive) = (self.dir.path(), self.dir.path().join("archive"));
        let (store, slurm) = (&self.store, &self.slurm);
        let text = format!(
            "time_zone = \"UTC\"\n[serve]\nstate = {state:?}\n[archive]\ndirectory = {archive:?}\n\
             [slurm]\ntimeout = \"60s\"\n{slurm}\n[store]\n{store}\n[bank]\n{settings}\n"
        );
        std::fs::write(&self.config, text).expect("the settings");
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(program());
        command
            .arg("bank")
            .args(args)
            .env("STEWARD_CONFIG", &self.config)
            .env("SLURM_CONF", Testbed::get().slurm_conf())
            .stdin(Stdio::null());
        command
    }

    /// Runs a command.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn run(&self, args: &[&str]) -> Ended {
        self.command(args).output().expect("steward").into()
    }

    /// Runs a command as somebody else.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn run_as(&self, user: &str, args: &[&str]) -> Ended {
        let mut command = Command::new("runuser");
        let config = format!("STEWARD_CONFIG={}", self.config.display());
        let slurm = format!("SLURM_CONF={}", Testbed::get().slurm_conf());
        let own = self.dir.path().join("steward-of-others");
        if !own.exists() {
            crate::service::copy_program(&program(), &own);
        }
        command.args(["-u", user, "--", "env", &config, &slurm]).arg(own).arg("bank").args(args);
        command.current_dir("/tmp").stdin(Stdio::null()).output().expect("runuser").into()
    }

    /// Brings the jobs of so many days into its archive.
    ///
    /// # Panics
    /// If that fails.
    pub fn collect(&self, days: u32) {
        let output = Command::new(program())
            .args(["collect", "--no-summary", "--days", &days.to_string()])
            .env("STEWARD_CONFIG", &self.config)
            .env("SLURM_CONF", Testbed::get().slurm_conf())
            .output()
            .expect("steward");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    /// Its settings.
    pub fn config(&self) -> &Path {
        &self.config
    }

    /// Starts a command.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn start(&self, args: &[&str]) -> Child {
        let mut command = self.command(args);
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("steward")
    }

    /// Runs a command that must end with 0, and gives what it printed.
    ///
    /// # Panics
    /// If it does not.
    pub fn done(&self, args: &[&str]) -> String {
        let ended = self.run(args);
        assert_eq!(ended.code, 0, "{args:?}: {ended:?}");
        ended.text
    }

    /// Runs a command that must end with this code, and gives what it said.
    ///
    /// # Panics
    /// If it does not.
    pub fn refused(&self, code: i32, args: &[&str]) -> String {
        let ended = self.run(args);
        assert_eq!(ended.code, code, "{args:?}: {ended:?}");
        ended.text + &ended.complaint
    }

    /// `info --json` of an account.
    ///
    /// # Panics
    /// If it fails.
    pub fn info(&self, account: &str) -> Value {
        serde_json::from_str(&self.done(&["info", account, "--json"])).expect("JSON")
    }
}

/// One at a time: sacctmgr makes halves of accounts when others are removed meanwhile.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An account of the testbed's Slurm with one user, which goes when it is dropped.
#[derive(Debug)]
pub struct Account {
    /// Its name.
    pub name: String,
    user: &'static str,
}

impl Account {
    /// Makes it.
    ///
    /// # Panics
    /// If sacctmgr refuses.
    pub fn new(name: &str, user: &'static str) -> Account {
        let _turn = turn();
        // Names of their own for each run: slurmdbd may keep the half of one that a killed test has left.
        let account = Account { name: format!("stw-{name}-{}", std::process::id()), user };
        // slurmdbd needs a moment after others have changed something.
        wait::until_true(&account.name, Duration::from_secs(60), || {
            account.remove();
            account.made()
        });
        account
    }

    fn made(&self) -> bool {
        let place = format!("account={}", self.name);
        let done = |args: &[&str]| {
            let mut command = Command::new("sacctmgr");
            command.args(args).env("SLURM_CONF", Testbed::get().slurm_conf());
            command.output().is_ok_and(|output| output.status.success())
        };
        done(&["-i", "add", "account", &self.name])
            && done(&["-i", "add", "user", self.user, &place])
    }

    /// Submits a job of it.
    ///
    /// # Panics
    /// If sbatch refuses.
    pub fn submit(&self, options: &[&str], script: &str) -> slurm::Job {
        let mut all = vec!["-A", self.name.as_str()];
        all.extend(options);
        slurm::submit(self.user, &all, script)
    }

    /// Whether sbatch would take such a job of it.
    ///
    /// # Panics
    /// If it cannot be asked.
    pub fn may_submit(&self, options: &[&str]) -> bool {
        let mut command = Command::new("runuser");
        command.args(["-u", self.user, "--", "sbatch", "--test-only", "-A", &self.name]);
        command.args(options).current_dir("/tmp").env("SLURM_CONF", Testbed::get().slurm_conf());
        command.output().expect("runuser").status.success()
    }

    /// A limit of it on a cluster, as sacctmgr prints it.
    ///
    /// # Panics
    /// If sacctmgr fails.
    pub fn limit(&self, cluster: &str, column: &str) -> String {
        let (account, cluster) = (format!("account={}", self.name), format!("cluster={cluster}"));
        let format = format!("format=User,{column}");
        let text =
            slurm::run("sacctmgr", &["-n", "-P", "show", "assoc", &account, &cluster, &format]);
        let own = text.lines().find_map(|line| line.strip_prefix('|'));
        own.unwrap_or_default().to_owned()
    }

    /// Sets something of it on a cluster.
    ///
    /// # Panics
    /// If sacctmgr refuses.
    pub fn set(&self, cluster: &str, setting: &str) {
        let (account, cluster) = (format!("account={}", self.name), format!("cluster={cluster}"));
        let words = ["-i", "modify", "account", "where", &account, &cluster, "set", setting];
        slurm::run("sacctmgr", &words);
    }

    /// What slurmctld says that it used.
    ///
    /// # Panics
    /// If sshare fails.
    pub fn used(&self) -> u64 {
        let text = slurm::run("sshare", &["-n", "-P", "-A", &self.name, "-o", "User,RawUsage"]);
        let own = text.lines().find_map(|line| line.trim().strip_prefix('|'));
        own.and_then(|used| used.parse().ok()).unwrap_or(0)
    }

    /// Somebody looks after it.
    ///
    /// # Panics
    /// If sacctmgr refuses.
    pub fn coordinate(&self, user: &str) {
        let (account, names) = (format!("account={}", self.name), format!("names={user}"));
        slurm::run("sacctmgr", &["-i", "add", "coordinator", &account, &names]);
    }

    fn remove(&self) {
        let run = |program: &str, args: &[&str]| {
            let mut command = Command::new(program);
            command.args(args).env("SLURM_CONF", Testbed::get().slurm_conf());
            drop(command.output());
        };
        run("scancel", &["-A", &self.name]);
        run("sacctmgr", &["-i", "delete", "account", &self.name]);
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        let _turn = turn();
        self.remove();
    }
}
