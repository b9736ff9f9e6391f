//! A real SMTP server of a test's own, which keeps what it takes in a Maildir.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::certificate::Certificate;
use crate::gateway::own_port;
use crate::wait;

/// The Python for which Debian installs aiosmtpd.
const PYTHON: &str = "/usr/bin/python3";

/// A running server; dropping it ends it.
#[derive(Debug)]
pub struct Smtp {
    directory: TempDir,
    arguments: Vec<String>,
    port: u16,
    child: Option<Child>,
}

/// A mail that the server took.
#[derive(Clone, Debug)]
pub struct Mail {
    /// As it came, with the envelope in X-MailFrom and X-RcptTo.
    pub raw: Vec<u8>,
}

impl Smtp {
    /// Starts one that takes everything.
    ///
    /// # Panics
    /// If it does not come up.
    pub fn start() -> Smtp {
        Smtp::with(&[])
    }

    /// Starts one that speaks TLS, `"starttls"` or `"tls"`, and may want a `USER:PASSWORD`.
    ///
    /// # Panics
    /// If it does not come up.
    pub fn secure(tls: &str, certificate: &Certificate, login: Option<&str>) -> Smtp {
        let (file, key) = (certificate.file(), certificate.key());
        let mut arguments = vec!["--tls", tls, "--certificate", &file, "--key", &key];
        arguments.extend(login.iter().flat_map(|login| ["--login", login]));
        Smtp::with(&arguments)
    }

    fn with(arguments: &[&str]) -> Smtp {
        let directory = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
        let arguments = arguments.iter().map(|&one| one.to_owned()).collect();
        let mut smtp = Smtp { directory, arguments, port: own_port(), child: None };
        smtp.forgive();
        smtp.resume();
        smtp
    }

    /// Ends it; what it took stays.
    ///
    /// # Panics
    /// If it cannot be ended.
    pub fn stop(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().and_then(|()| child.wait()).unwrap_or_else(|e| panic!("aiosmtpd: {e}"));
        }
    }

    /// Starts it again on the same port.
    ///
    /// # Panics
    /// If it does not come up.
    pub fn resume(&mut self) {
        let ready = self.path("ready");
        // Of the one before.
        drop(fs::remove_file(&ready));
        let script = crate::directory().join("src/smtp.py");
        let log = fs::File::create(self.path("log")).unwrap_or_else(|error| panic!("{error}"));
        let child = Command::new(PYTHON)
            .arg(script)
            .args([self.path("mail"), self.path("orders"), ready.clone()])
            .arg(self.port.to_string())
            .args(&self.arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap_or_else(|error| panic!("{PYTHON}: {error}"));
        self.child = Some(child);
        wait::until_true("the SMTP server listens", Duration::from_secs(30), || ready.exists());
    }

    /// Its port, on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// From now on this recipient is refused for good.
    ///
    /// # Panics
    /// If that cannot be ordered.
    pub fn refuse(&self, address: &str) {
        self.order(&format!("refuse 550 {address}"));
    }

    /// From now on this recipient is refused for the moment.
    ///
    /// # Panics
    /// If that cannot be ordered.
    pub fn refuse_for_now(&self, address: &str) {
        self.order(&format!("refuse 451 {address}"));
    }

    /// From now on mails are taken, and never answered for.
    ///
    /// # Panics
    /// If that cannot be ordered.
    pub fn stall(&self) {
        self.order("stall");
    }

    /// From now on everything is taken again.
    ///
    /// # Panics
    /// If that cannot be ordered.
    pub fn forgive(&self) {
        fs::write(self.path("orders"), "").unwrap_or_else(|error| panic!("orders: {error}"));
    }

    fn order(&self, line: &str) {
        OpenOptions::new()
            .append(true)
            .open(self.path("orders"))
            .and_then(|mut file| writeln!(file, "{line}"))
            .unwrap_or_else(|error| panic!("orders: {error}"));
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// What it took so far, in no order.
    ///
    /// # Panics
    /// If the Maildir cannot be read.
    pub fn messages(&self) -> Vec<Mail> {
        maildir(&self.path("mail"))
    }

    /// The recipients of what it took so far, sorted.
    ///
    /// # Panics
    /// If the Maildir cannot be read.
    pub fn recipients(&self) -> Vec<String> {
        let mut all: Vec<String> =
            self.messages().iter().filter_map(|mail| mail.header("X-RcptTo")).collect();
        all.sort();
        all
    }
}

/// The mails of a Maildir; none if it is not there yet.
///
/// # Panics
/// If it cannot be read.
pub fn maildir(path: &Path) -> Vec<Mail> {
    let Ok(entries) = fs::read_dir(path.join("new")) else { return Vec::new() };
    let read = |entry: std::io::Result<fs::DirEntry>| {
        let raw = entry.and_then(|entry| fs::read(entry.path()));
        Mail { raw: raw.unwrap_or_else(|error| panic!("{}: {error}", path.display())) }
    };
    entries.map(read).collect()
}

impl Mail {
    /// A header as it stands there, on one line; `None` if there is none.
    pub fn header(&self, name: &str) -> Option<String> {
        let text = String::from_utf8_lossy(&self.raw).replace("\r\n", "\n");
        let head = text.split("\n\n").next()?.replace("\n ", " ").replace("\n\t", " ");
        head.lines().find_map(|line| {
            let (known, value) = line.split_once(':')?;
            known.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
        })
    }

    /// As Python's own email package reads it: `headers` by name in small letters, `parts`.
    ///
    /// # Panics
    /// If it cannot.
    pub fn parsed(&self) -> Value {
        let mut child = Command::new(PYTHON)
            .arg(crate::directory().join("src/mail.py"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{PYTHON}: {error}"));
        let input = child.stdin.take();
        let mut input = input.unwrap_or_else(|| panic!("{PYTHON} has no input"));
        input.write_all(&self.raw).unwrap_or_else(|error| panic!("{PYTHON}: {error}"));
        drop(input);
        let done = child.wait_with_output().unwrap_or_else(|error| panic!("{PYTHON}: {error}"));
        serde_json::from_slice(&done.stdout).unwrap_or_else(|error| panic!("mail.py: {error}"))
    }
}

impl Drop for Smtp {
    fn drop(&mut self) {
        self.stop();
    }
}
