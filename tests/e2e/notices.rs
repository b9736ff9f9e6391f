//! Notices on a real Slurm with a real mail server: who gets a mail, who does not, and nobody twice.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use steward_tests::postgres::Postgres;
use steward_tests::service::{Service, program};
use steward_tests::slurm::{self, Job, submit};
use steward_tests::smtp::{Mail, Smtp};
use steward_tests::testbed::Testbed;
use steward_tests::{shared, wait};

pub const PATIENCE: Duration = Duration::from_secs(180);

/// A job name that would like to be a header, a tag and a column.
const HOSTILE: &str = "<script>alert(1)</script>|\"x\"\r\nBcc: a@b";

/// Everybody whose jobs ask for more time than they need.
const RULE: &str = r#"
[rules.excessive-time-cpu]
cpu_hours = 0
overall_ratio = 1
top_users = 1000
include_running = false
"#;

/// A centre with its archive and store in one directory, and a mail server.
pub struct Site {
    dir: tempfile::TempDir,
    pub mail: Smtp,
}

impl Site {
    pub fn new() -> Site {
        let site = Site { dir: shared::directory(), mail: Smtp::start() };
        site.configure("state", "");
        site
    }

    /// With a store in the directory `state`, and these settings beside.
    pub fn configure(&self, state: &str, more: &str) {
        std::fs::write(self.config(), self.settings(state, more)).unwrap();
    }

    pub fn settings(&self, state: &str, more: &str) -> String {
        format!("{}[serve]\nstate = {:?}\n", self.without_state(more), self.path(state))
    }

    fn without_state(&self, more: &str) -> String {
        let archive = self.path("archive");
        let port = self.mail.port();
        format!(
            "time_zone = \"UTC\"\n[archive]\ndirectory = {archive:?}\n{RULE}\n[mail]\nfrom = \"Steward <steward@hpc.example>\"\nreply_to = \"help@hpc.example\"\n\
             [mail.smtp]\nhost = \"127.0.0.1\"\nport = {port}\ntls = \"none\"\ntimeout = \"5s\"\n\
             [mail.address]\nmethod = \"domain\"\ndomain = \"hpc.example\"\n{more}\n"
        )
    }

    pub fn path(&self, name: &str) -> std::path::PathBuf {
        self.dir.path().join(name)
    }

    pub fn config(&self) -> std::path::PathBuf {
        self.path("steward.toml")
    }

    fn command(&self, args: &[&str]) -> Command {
        command(&self.config(), args)
    }

    /// What a command prints as JSON, and its exit code.
    pub fn json(&self, args: &[&str]) -> (Value, i32) {
        let done = self.command(args).output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        let answer = serde_json::from_slice(&done.stdout).unwrap_or(Value::String(said));
        (answer, done.status.code().unwrap())
    }

    /// Evaluates what was collected, and sends.
    pub fn email(&self, args: &[&str]) -> Value {
        self.json(&[&EMAIL[..], args].concat()).0
    }

    /// To whom mails came, sorted.
    pub fn recipients(&self) -> Vec<String> {
        self.mail.recipients()
    }
}

pub fn command(config: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(program());
    command.arg("--config").arg(config).args(args).stdin(Stdio::null());
    command.env("SLURM_CONF", Testbed::get().slurm_conf());
    command
}

/// A job of each of three users that asks for many hours and needs a second, in the archive.
pub fn wasteful(site: &Site) -> Vec<(&'static str, Job)> {
    // The newest waste the most, and so stand among the first of a mail.
    let seconds: u64 = slurm::run("date", &["+%s"]).trim().parse().unwrap();
    let limit = format!("--time={}", 600 + seconds / 60 % 800);
    let jobs = ["stw-alice", "stw-bob", "stw-carol"].map(|user| {
        let options = ["-n1", &limit, "-J", HOSTILE];
        (user, submit(user, &options, "#!/bin/bash\nsleep 1\n"))
    });
    jobs.iter().for_each(|(_, job)| job.wait_ended(PATIENCE));
    // The accounting hears of an end a moment later, and of a job by its number before it tells of it by time.
    wait::until_true("all are in the archive", PATIENCE, || {
        let done = site.command(&["collect", "--days", "1"]).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        let (kept, _) =
            site.json(&["jobs", "--all-users", "--days", "1", "--limit", "0", "--json"]);
        let kept = kept["jobs"].as_array().unwrap_or_else(|| panic!("{kept}"));
        jobs.iter().all(|(_, job)| {
            kept.iter().any(|one| one["job"] == job.id.as_str() && one["state"] == "COMPLETED")
        })
    });
    jobs.into()
}

/// Whether a table of a text, or of a page, has a row of this job. The first jobs of a cluster have numbers that also
/// stand elsewhere.
fn names(text: &str, job: &str) -> bool {
    text.contains(&format!(">{job}</td>"))
        || text.lines().any(|line| line.split_whitespace().next() == Some(job))
}

fn told(answer: &Value) -> Vec<&str> {
    let told = answer["notices"]["told"].as_array().unwrap_or_else(|| panic!("{answer}"));
    let mut users: Vec<&str> = told.iter().map(|one| one["user"].as_str().unwrap()).collect();
    users.sort_unstable();
    users
}

fn held<'a>(answer: &'a Value, user: &str) -> &'a str {
    let held = answer["notices"]["held"].as_array().unwrap_or_else(|| panic!("{answer}"));
    let one = held.iter().find(|one| one["user"] == user).unwrap_or_else(|| panic!("{answer}"));
    one["why"].as_str().unwrap()
}

/// Evaluates what was collected, and sends.
pub const EMAIL: [&str; 8] = [
    "evaluate",
    "--no-collect",
    "--json",
    "--days",
    "1",
    "--email",
    "--rule",
    "excessive-time-cpu",
];

pub const ALWAYS: &str = "[notices]\ndays = \"always\"\n";

#[test]
fn the_right_user_gets_one_mail_and_another_only_after_the_quiet_time() {
    let site = Site::new();
    let jobs = wasteful(&site);
    site.configure("state", ALWAYS);
    let (would, code) = site.json(&["evaluate", "--no-collect", "--json", "--days", "1"]);
    // Comments of other tests' jobs are broken.
    assert!(code == 0 || code == 3, "{code}");
    assert_eq!(would["notices"]["sent"], false);
    assert_eq!(told(&would), ["stw-alice", "stw-bob", "stw-carol"]);
    assert!(site.mail.messages().is_empty(), "only --email sends");
    assert!(!site.path("state").join("steward.db").exists(), "nor is anything recorded");

    let first = site.email(&[]);
    let everybody = ["stw-alice@hpc.example", "stw-bob@hpc.example", "stw-carol@hpc.example"];
    assert_eq!(site.recipients(), everybody, "{first}");
    for mail in site.mail.messages() {
        let to = mail.header("X-RcptTo").unwrap();
        let parsed = mail.parsed();
        assert!(parsed["headers"]["bcc"].is_null(), "{parsed}");
        let parts = parsed["parts"].as_array().unwrap();
        let of = |kind: &str| {
            let part = parts.iter().find(|part| part["type"] == kind).unwrap();
            part["text"].as_str().unwrap().to_owned()
        };
        let (text, page) = (of("text/plain"), of("text/html"));
        assert!(!page.contains("<script>"), "{page}");
        for (user, job) in &jobs {
            let own = to.starts_with(user);
            assert_eq!(names(&text, &job.id), own, "{user} {}: {text}", job.id);
            assert_eq!(names(&page, &job.id), own, "{user} {}: {page}", job.id);
        }
    }

    let second = site.email(&[]);
    assert_eq!(held(&second, "stw-alice"), "quiet");
    assert_eq!(site.recipients().len(), 3);
    // The quiet time ends: of no days it is over with the second.
    std::thread::sleep(Duration::from_secs(1));
    let third = site.email(&["--quiet-days", "0"]);
    assert_eq!(told(&third).len(), 3);
    assert_eq!(site.recipients().len(), 6);
    let (calendar, _) = site.json(&["notices", "--json"]);
    assert_eq!(calendar["notices_count"], 6, "{calendar}");
    assert!(calendar["users"][0]["days"].as_str().unwrap().ends_with('X'), "{calendar}");
}

#[test]
fn nothing_is_sent_on_a_holiday_or_to_one_who_is_exempt() {
    let site = Site::new();
    wasteful(&site);
    let today = day(0);
    let file = site.path("holidays");
    // Midnight may come in between.
    let tomorrow = day(1);
    std::fs::write(&file, format!("# days off\n{today}\n{tomorrow}\n")).unwrap();
    site.configure("state", &format!("[notices]\nholidays = {file:?}\n"));
    let answer = site.email(&[]);
    assert_eq!(held(&answer, "stw-alice"), "day");
    assert!(site.mail.messages().is_empty());

    site.configure("state", ALWAYS);
    let made = site
        .command(&["exempt", "add", "stw-alice", "--reason", "a course", "--for", "14d"])
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let answer = site.email(&[]);
    assert_eq!(held(&answer, "stw-alice"), "exempt");
    assert_eq!(site.recipients(), ["stw-bob@hpc.example", "stw-carol@hpc.example"]);
}

#[test]
fn a_refused_recipient_stops_nobody_and_is_tried_again() {
    let site = Site::new();
    wasteful(&site);
    site.configure("state", "[notices]\ndays = \"always\"\nretry = \"1s\"\n");
    site.mail.refuse("stw-bob@hpc.example");
    let answer = site.email(&[]);
    assert_eq!(site.recipients(), ["stw-alice@hpc.example", "stw-carol@hpc.example"], "{answer}");
    assert_eq!(answer["notices"]["open"][0]["fate"], "waiting", "{answer}");
    site.mail.forgive();
    wait::until_true("the third has it too", PATIENCE, || {
        site.email(&[]);
        site.recipients().len() > 2
    });
    let all = ["stw-alice@hpc.example", "stw-bob@hpc.example", "stw-carol@hpc.example"];
    assert_eq!(site.recipients(), all);
    site.email(&[]);
    assert_eq!(site.recipients(), all, "and not once more");
}

#[test]
fn a_server_that_is_down_marks_nothing_sent() {
    let site = Site::new();
    wasteful(&site);
    let down = "[notices]\ndays = \"always\"\n";
    let settings =
        site.settings("state", down).replace(&format!("port = {}", site.mail.port()), "port = 1");
    std::fs::write(site.config(), settings).unwrap();
    let (answer, code) = site.json(&EMAIL);
    assert_eq!(code, 3, "{answer}");
    assert_eq!(answer["notices"]["mails_sent"], 0);
    let (calendar, _) = site.json(&["notices", "--json"]);
    let open = calendar["open"].as_array().unwrap();
    assert_eq!(open.len(), 3, "{calendar}");
    assert!(open.iter().all(|one| one["fate"] == "planned"), "{calendar}");
    site.configure("state", down);
    site.email(&[]);
    assert_eq!(site.recipients().len(), 3, "they go out when it is back");
    site.email(&[]);
    assert_eq!(site.recipients().len(), 3);
}

/// The second notice in a row goes to the account's coordinator too, the third to the administrators.
#[test]
fn the_ladder_has_coordinators_and_administrators() {
    let site = Site::new();
    wasteful(&site);
    slurm::run("sacctmgr", &["-i", "add", "coordinator", "account=physics", "names=stw-bob"]);
    let ladder = "[notices]\ndays = \"always\"\n[notices.ladder]\nenabled = true\n";
    let admins = "admins = [\"root@hpc.example\"]\n[mail.smtp]";
    let settings = site.settings("state", ladder).replace("[mail.smtp]", admins);
    std::fs::write(site.config(), settings).unwrap();
    let to = |address: &str| {
        let all = site.mail.messages();
        let is = |mail: &Mail| mail.header("X-RcptTo").as_deref() == Some(address);
        all.into_iter().filter(is).collect::<Vec<_>>()
    };
    site.email(&[]);
    assert!(to("stw-alice@hpc.example").iter().all(|mail| mail.header("Cc").is_none()));
    std::thread::sleep(Duration::from_secs(1));
    site.email(&["--quiet-days", "0"]);
    let alices = to("stw-alice@hpc.example");
    assert_eq!(alices.len(), 2);
    let copied = alices.iter().filter_map(|mail| mail.header("Cc")).collect::<Vec<_>>();
    assert_eq!(copied.len(), 1, "{copied:?}");
    assert!(copied[0].contains("stw-bob@hpc.example"), "{copied:?}");
    let id = alices.iter().find(|mail| mail.header("Cc").is_some()).unwrap().header("Message-ID");
    assert!(to("stw-bob@hpc.example").iter().any(|mail| mail.header("Message-ID") == id));
    let copies = to("root@hpc.example");
    assert!(
        copies.iter().any(|mail| mail.header("Subject").unwrap().contains("stw-alice")),
        "copies say whom they are about"
    );
    let before = copies.len();
    std::thread::sleep(Duration::from_secs(1));
    site.email(&["--quiet-days", "0"]);
    let proposals = to("root@hpc.example").len() - before;
    assert_eq!(proposals, 6, "a copy and a proposal for each of three users");
}

/// Two services on one PostgreSQL, each with its own state: one mail for each user.
#[test]
fn two_services_on_one_postgresql_send_one_mail() {
    let site = Site::new();
    wasteful(&site);
    let database = Postgres::start();
    let notices = "[notices]\nenabled = true\ndays = \"always\"\nschedule = \"*/3 * * * * *\"\n\
                   post = \"*/2 * * * * *\"\n";
    let settings = site.without_state(&format!("{notices}{}", database.settings()));
    let services = ["one", "two"].map(|name| {
        let dir = site.path(name);
        std::fs::create_dir(&dir).unwrap();
        Service::start(&dir, name, &settings)
    });
    wait::until_true("all have a mail", PATIENCE, || site.recipients().len() >= 3);
    // Several more runs of both.
    std::thread::sleep(Duration::from_secs(10));
    let all = ["stw-alice@hpc.example", "stw-bob@hpc.example", "stw-carol@hpc.example"];
    assert_eq!(site.recipients(), all);
    drop(services);
}

/// The day so many days from today, in UTC.
fn day(days: u32) -> String {
    slurm::run("date", &["-u", "-d", &format!("{days} days"), "+%F"]).trim().to_owned()
}
