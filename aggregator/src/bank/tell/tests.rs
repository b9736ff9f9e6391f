use steward_common::bank::account;
use steward_common::limit::Limit;
use steward_common::time::Timestamp;

use super::*;
use crate::bank::tests::{Stage, hours, stage};
use crate::config::Transport;
use crate::mail::sample;
use crate::store::ledger::Author;

/// With mails into a directory.
async fn with_mail() -> Stage {
    let mut stage = stage().await;
    let maildir = stage.dir.path().join("mail");
    stage.config(|config| {
        config.bank.mail = true;
        config.mail.from = Some("Steward <steward@hpc.example>".parse().unwrap());
        config.mail.transport = Transport::Maildir;
        config.mail.maildir = Some(maildir);
        config.mail.address.domain = Some("hpc.example".to_owned());
    });
    stage
}

/// To whom mails came since the last look, with their subjects.
fn mails(stage: &Stage) -> Vec<(String, String)> {
    let mut all = Vec::new();
    let Ok(entries) = std::fs::read_dir(stage.dir.path().join("mail/new")) else { return all };
    for entry in entries {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap().replace("\n ", " ");
        let of = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            line.unwrap_or_default().trim().to_owned()
        };
        all.push((of("Delivered-To:"), of("Subject:")));
        std::fs::remove_file(path).unwrap();
    }
    all.sort();
    all
}

fn to_bob(subject: &str) -> Vec<(String, String)> {
    vec![("bob@hpc.example".to_owned(), subject.to_owned())]
}

#[tokio::test]
async fn each_level_is_one_mail_in_a_period() {
    let stage = with_mail().await;
    stage.check(21_599_999).await;
    assert_eq!(mails(&stage), []);
    for (used, subject) in [
        (21_600_000, "Account test1 has used 60.0 % of its service units"),
        (32_400_000, "Account test1 has used 90.0 % of its service units"),
        (36_003_600, "Account test1 has used up its service units and is held"),
    ] {
        let report = stage.check(used).await;
        assert_eq!((mails(&stage), report.troubles), (to_bob(subject), vec![]));
        stage.check(used).await;
        assert_eq!(mails(&stage), [], "{subject}: once");
    }
    assert_eq!(stage.flags().await, (true, true, true));
    // Units came: what is left of them is told of anew.
    stage.add(2000).await.unwrap();
    assert_eq!(mails(&stage), to_bob("Account test1 has used 83.3 % of its service units"));
}

#[tokio::test]
async fn without_mail_levels_are_recorded() {
    let mut stage = with_mail().await;
    stage.settings(|bank| bank.mail = false);
    stage.check(36_003_600).await;
    assert_eq!((stage.flags().await, mails(&stage)), ((false, false, true), vec![]));
    let open = stage.bank.store.open_deliveries(Timestamp::new(0)).await.unwrap();
    assert!(open.is_empty(), "{open:?}");
}

#[tokio::test]
async fn who_has_no_coordinator_is_told_of_to_the_administrators() {
    let mut stage = with_mail().await;
    stage.write("coordinators", "root|\ntest1|\n");
    let report = stage.check(21_600_000).await;
    assert!(report.troubles[0].contains("nobody to tell"), "{:?}", report.troubles);
    assert!(stage.flags().await.0, "it is recorded all the same");
    let admins = ["ops@hpc.example", "boss@hpc.example"];
    stage.config(|config| config.mail.admins = admins.map(|one| one.parse().unwrap()).into());
    stage.check(32_400_000).await;
    let told: Vec<String> = mails(&stage).into_iter().map(|(to, _)| to).collect();
    assert_eq!(told, ["boss@hpc.example", "ops@hpc.example"]);
}

#[tokio::test]
async fn a_level_is_recorded_when_it_can_be_told() {
    let mut stage = with_mail().await;
    let from = stage.bank.config.mail.from.clone();
    stage.config(|config| config.mail.from = None);
    let mute = stage.check(36_003_600).await;
    assert!(mute.troubles[0].contains("nobody is told by mail"), "{:?}", mute.troubles);
    assert_eq!(
        (stage.flags().await.2, mute.accounts[0].held.len()),
        (false, 1),
        "held all the same"
    );
    stage.config(|config| config.mail.from = from);
    stage.check(36_003_600).await;
    assert_eq!(mails(&stage), to_bob("Account test1 has used up its service units and is held"));
}

#[tokio::test]
async fn a_hold_that_sacctmgr_refused_is_not_told() {
    let stage = with_mail().await;
    stage.write("refuse", "");
    stage.check(36_003_600).await;
    assert_eq!((mails(&stage), stage.flags().await.2), (vec![], false));
    std::fs::remove_file(stage.dir.path().join("refuse")).unwrap();
    stage.check(36_003_600).await;
    assert_eq!(mails(&stage).len(), 1);
}

#[tokio::test]
async fn the_end_is_one_mail_in_a_period() {
    let stage = with_mail().await;
    let start = stage.bank.today().plus(90 - 365).unwrap();
    let end = stage.bank.date("test1", start, None).await.unwrap().end;
    for expected in [to_bob(&format!("The proposal of account test1 ends on {end}")), vec![]] {
        let whole = stage.bank.whole_check(None).await.unwrap();
        assert_eq!(whole.soon.len(), expected.len());
        assert_eq!(mails(&stage), expected);
    }
}

/// Sends what is due on a day; how many.
async fn statements(stage: &Stage, voice: &Voice, day: Day, troubles: &mut Vec<String>) -> usize {
    match stage.bank.due_statements(voice, day).await.unwrap() {
        Some(due) => stage.bank.tell_statements(voice, &due, troubles).await.unwrap(),
        None => 0,
    }
}

#[tokio::test]
async fn a_new_account_does_not_wait_for_the_jobs_of_a_month_before_it() {
    let stage = with_mail().await;
    let troubles = stage.bank.whole_check(None).await.unwrap().troubles;
    assert!(!troubles.iter().any(|trouble| trouble.contains("statements")), "{troubles:?}");
}

#[tokio::test]
async fn a_month_is_one_statement() {
    let mut stage = with_mail().await;
    let today: Day = "2026-11-02".parse().unwrap();
    let noon = |day: &str| {
        let moment: jiff::Timestamp = format!("{day}T12:00:00Z").parse().unwrap();
        Timestamp::new(moment.as_second())
    };
    let author =
        Author { actor: "ada".to_owned(), reason: "insert".to_owned(), at: noon("2026-10-20") };
    let period = ("2026-10-20".parse().unwrap(), "2027-10-20".parse().unwrap());
    let opening = account::opening(None, Limit::At(hours(500)));
    stage.bank.store.open_account("astro", period, &opening, &author).await.unwrap();
    stage.write("coordinators", "test1|bob\nastro|carol\n");
    let mut troubles = Vec::new();
    let voice = stage.bank.voice(&mut troubles).await;
    let first = "2026-11-01".parse().unwrap();
    assert_eq!(statements(&stage, &voice, first, &mut troubles).await, 0);
    // test1 was made later than October.
    assert_eq!(statements(&stage, &voice, today, &mut troubles).await, 1);
    assert_eq!(statements(&stage, &voice, today, &mut troubles).await, 0);
    stage.bank.deliver(&voice, &mut troubles).await;
    let carol = "carol@hpc.example".to_owned();
    assert_eq!(mails(&stage), [(carol, "Account astro: service units of 2026-10".to_owned())]);
    assert_eq!(troubles, Vec::<String>::new());
    stage.settings(|bank| bank.statements = false);
    let later = "2026-12-02".parse().unwrap();
    assert_eq!(statements(&stage, &voice, later, &mut troubles).await, 0);
}

#[test]
fn the_last_month_is_told_from_the_second_day_on() {
    let day = |text: &str| text.parse::<Day>().unwrap();
    assert_eq!(last_month(day("2026-11-01")), None);
    assert_eq!(last_month(day("2026-11-02")), Some((day("2026-10-01"), day("2026-11-01"))));
    assert_eq!(last_month(day("2027-01-31")), Some((day("2026-12-01"), day("2027-01-01"))));
}

#[tokio::test]
async fn samples_have_the_figures_that_mails_have() {
    let stage = with_mail().await;
    let asked = stage.bank.ask().await.unwrap();
    let view = stage.bank.views(Some("test1"), Some(&asked)).await.unwrap().remove(0);
    let keys = |content: Content| {
        let Content::Account(account) = content else { panic!("no account") };
        account.figures.into_keys().collect::<std::collections::BTreeSet<_>>()
    };
    let (from, to) = ("2026-10-01".parse().unwrap(), "2026-11-01".parse().unwrap());
    let month = Month::new("test1", &[], from, to, |_| from);
    let mut all = keys(letter::held(&view, Fate::default()));
    all.extend(keys(letter::level(&view)));
    all.extend(keys(letter::ending(&view, true)));
    all.extend(keys(letter::statement(&view, month, from)));
    assert_eq!(all, keys(sample(Template::Held).content));
}
