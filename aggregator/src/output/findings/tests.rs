use std::collections::HashMap;

use std::time::Duration;

use steward_common::id::{ClusterName, JobId};
use steward_common::intern::Name;
use steward_common::rule::{Gathering, Hardware, Usage, find};
use steward_common::slurm::state::JobState;
use steward_common::time::Timestamp;
use steward_common::unit::Bytes;
use steward_common::window::Window;

use super::*;
use crate::output::screen::Screen;
use crate::output::{csv, terminal};

/// Jobs 1 to 6 of ten hours with a billing weight of 2; the last one is a task of an array and has
/// none.
fn facts() -> Facts {
    let window = Window::new(Timestamp::new(0), Timestamp::new(1_000_000)).unwrap();
    let cluster = ClusterName::new("c").unwrap();
    let mut all = Gathering::new(cluster, window, window.to(), Hardware::default());
    for number in 1..=6 {
        let last = number == 6;
        let mut text = |text: &str| all.names().intern(text);
        let user = text(if number < 5 { "ann" } else { "=eve\n" });
        let (account, partition, qos) = (text("x"), text("main"), text("normal"));
        let (name, nodes) = (text("n"), text("n1"));
        all.push(Job {
            key: JobKey { id: JobId::new(number).unwrap(), submit: Timestamp::new(0) },
            array: last.then_some((100, Some(7))),
            user,
            account,
            partition,
            qos,
            name,
            nodes,
            licences: None,
            state: JobState::Completed,
            start: Some(Timestamp::new(10)),
            end: Some(Timestamp::new(36_010)),
            elapsed: Some(36_000),
            time_limit: None,
            cpus: Some(2),
            node_count: Some(1),
            gpus: Some(0),
            memory: None,
            billing: (!last).then_some(2),
            usage: Usage::default(),
        })
        .unwrap();
    }
    all.finish()
}

fn user(facts: &Facts, text: &str) -> Name {
    facts.names.find(text).unwrap()
}

fn hits(facts: &Facts, user: Name, wasted: f64) -> Vec<Hit> {
    let own = facts.jobs().iter().filter(|job| job.user == user);
    own.map(|job| Hit::new(job, Some(wasted), Figures::default().with("hours", job.hours())))
        .collect()
}

fn instance() -> Instance {
    Instance::of(find("low-cpu-efficiency").unwrap())
}

fn row(sheet: &Sheet, at: usize) -> HashMap<&str, &Cell> {
    sheet.columns.iter().map(|column| &*column.key).zip(&sheet.rows[at]).collect()
}

#[test]
fn columns_follow_from_the_figures_with_their_units() {
    let facts = facts();
    let (ann, eve) = (user(&facts, "ann"), user(&facts, "=eve\n"));
    let figures = Figures::default()
        .with("gpu_hours_idle", 12.5)
        .with("memory_used", Value::Bytes(Bytes::new(3 << 29)))
        .with("time_left", Value::Time(Duration::from_secs(5400)))
        .with("cpu_efficiency", Value::Share(0.123))
        .with("gpus", 4u32)
        .with("stage", Value::Word("warned"))
        .with("node", Value::Name(user(&facts, "n1")));
    let less = Figures::default().with("gpu_hours_idle", 1.0);
    let found = |user, wasted, figures: &Figures| {
        let hits = hits(&facts, user, wasted);
        let subject = Subject::User { user, part: Part::All };
        (subject, Finding { audience: Audience::User, figures: figures.clone(), hits })
    };
    // The one of whose jobs one is not billed comes last.
    let findings = [found(eve, 1.0, &less), found(ann, 0.5, &figures)];
    let sheet = sheet(&instance(), &[Found { facts: &facts, findings: &findings }]);
    let heads: Vec<&str> = sheet.columns.iter().map(|column| &*column.head).collect();
    assert_eq!(
        heads[2..9],
        [
            "GPU hours idle",
            "Memory used, GiB",
            "Time left, h",
            "CPU efficiency %",
            "GPUs",
            "Stage",
            "Node"
        ]
    );
    let first = row(&sheet, 0);
    assert_eq!(first["user"], &Cell::text("ann"));
    assert_eq!(first["memory_used_gib"], &Cell::Number(1.5));
    assert_eq!(first["time_left_hours"], &Cell::Number(1.5));
    assert_eq!(first["cpu_efficiency_percent"], &Cell::Share(0.123));
    assert_eq!((first["gpus"], first["stage"]), (&Cell::Count(4), &Cell::text("warned")));
    // Four jobs of ten hours with a weight of 2, half of it.
    assert_eq!(first["billing_hours_wasted"], &Cell::Number(40.0));
    assert_eq!((first["found_jobs"], first["job_ids"]), (&Cell::Count(4), &Cell::text("1,2,3,4")));
    let second = row(&sheet, 1);
    assert_eq!((second["gpus"], second["billing_hours_wasted"]), (&Cell::Missing, &Cell::Missing));
    assert_eq!(second["job_ids"], &Cell::text("5,100_7"));
    let text = csv::sheet(&sheet, None);
    assert!(text.contains("\r\n\"'=eve\\n\","), "{text}");
}

#[test]
fn more_jobs_than_are_named_are_counted_and_jobs_have_lines_of_their_own() {
    let facts = facts();
    let findings = ["ann", "=eve\n"].map(|name| {
        let user = user(&facts, name);
        // As a rule might find them that speaks of two kinds of waste.
        let hits = [hits(&facts, user, 0.25), hits(&facts, user, 0.25)].concat();
        let finding = Finding { audience: Audience::User, figures: Figures::default(), hits };
        (Subject::User { user, part: Part::All }, finding)
    });
    let found = [Found { facts: &facts, findings: &findings }];
    let ids = row(&sheet(&instance(), &found), 0)["job_ids"].clone();
    assert_eq!(ids, Cell::text("1,2,3,4 +4"));
    let jobs = jobs(&instance(), &found);
    assert_eq!(jobs.rows.len(), 12);
    let first = row(&jobs, 0);
    assert_eq!(
        (first["hours"], first["wasted_percent"]),
        (&Cell::Number(10.0), &Cell::Share(0.25))
    );
    assert_eq!(first["billing_hours_wasted"], &Cell::Number(5.0));
    let unbilled = jobs.rows.iter().filter(|row| row.contains(&Cell::text("100_7"))).count();
    assert_eq!(unbilled, 2);
}

#[test]
fn a_finding_about_a_job_names_the_job_and_has_its_figures_in_both_forms() {
    let facts = facts();
    let job = &facts.jobs()[0];
    let figures = Figures::default().with("cores_per_gpu", 24.0);
    let hits = vec![Hit::new(job, None, Figures::default())];
    let subject = Subject::Job { user: job.user, job: job.key };
    let findings = [(subject, Finding { audience: Audience::Advice, figures, hits })];
    let found = [Found { facts: &facts, findings: &findings }];
    for sheet in [sheet(&instance(), &found), jobs(&instance(), &found)] {
        let row = row(&sheet, 0);
        assert_eq!(row["job"], &Cell::text(job.shown_id()));
        assert_eq!(row["cores_per_gpu"], &Cell::Number(24.0));
        assert_eq!(row["billing_hours_wasted"], &Cell::Missing);
    }
}

#[test]
fn what_is_lacking_is_told_the_most_frequent_first() {
    let facts = facts();
    let subject = Subject::User { user: user(&facts, "ann"), part: Part::All };
    let unknown = [Missing::Held, Missing::Unmeasured, Missing::Unmeasured].map(|m| (subject, m));
    let said = "nobody measured it (2), what was held is not known (1)";
    assert_eq!(lacks(&unknown).as_deref(), Some(said));
    assert_eq!(lacks(&[]), None);
}

/// Job Defense Shield writes "2 (14)" for two mails, the last one fourteen days ago, and pads the
/// texts by hand. A count and an age are two columns here, and figures stand at the right; where
/// nobody was written to, there is no age, and where that is so for all, no column of it.
#[test]
fn x15_a_count_and_an_age_stand_in_columns_of_their_own() {
    let lines = |rows: Vec<Vec<Cell>>| -> Vec<String> {
        let none: [&(); 0] = [];
        let mut sheet = Sheet::new("x", "", &[], none);
        sheet.columns = vec![
            always("user", "User"),
            always("mails", "Mails"),
            hide(1, "mail_days", "Days ago"),
        ];
        sheet.rows = rows;
        terminal::sheet(&sheet, Screen::file(), None).lines().skip(2).map(str::to_owned).collect()
    };
    let row =
        |count, days: Option<f64>| vec![Cell::text("u"), Cell::Count(count), Cell::number(days)];
    assert_eq!(
        lines(vec![row(0, None), row(1, Some(3.0)), row(2, Some(14.0))]),
        ["u         0         -", "u         1       3.0", "u         2      14.0"]
    );
    assert_eq!(lines(vec![row(0, None), row(0, None)]), ["u         0", "u         0"]);
}
