use std::time::Duration;

use steward_common::bank::account;
use steward_common::bank::hold::Mechanism;
use steward_common::limit::Limit;

use super::*;
use crate::store::alerts::{AlertKey, Ended, Raised};
use crate::store::audit::Entry;
use crate::store::cancels::Key;
use crate::store::events::{NewEvent, Tried};
use crate::store::exemptions::Wanted;
use crate::store::holds::{Hold, Stage};
use crate::store::ledger::Author;
use crate::store::notices::Notice;
use crate::store::post::{Fate, Mail};

fn at(seconds: i64) -> Timestamp {
    Timestamp::new(1_800_000_000 + seconds)
}

fn text(text: &str) -> String {
    text.to_owned()
}

/// A notice on this cluster with a mail, which is on its way.
async fn tell(store: &Store, user: &str, cluster: &str, id: &str) {
    let notice = Notice {
        instance: text("low-cpu"),
        rule: text("low-cpu"),
        user: text(user),
        cluster: text(cluster),
        at: at(0),
        step: 1,
        jobs: Some(3),
        wasted: None,
        message: text(id),
    };
    let mail = Mail {
        id: text(id),
        kind: text("digest"),
        about: text(user),
        subject: text("Your jobs"),
        text: format!("Dear {user}"),
        to: vec![format!("{user}@a.org"), text("boss@a.org")],
    };
    assert!(store.plan(&[(notice, Duration::ZERO)], &[mail], at(0)).await.unwrap());
}

async fn cancel(store: &Store, user: &str, job: u32, cluster: &str) -> String {
    let key = Key { instance: text("i"), cluster: text(cluster), job, submitted: at(0) };
    store.claim_cancel(&key, user, at(0)).await.unwrap().unwrap().id
}

/// An alert that holds, and an event that waits.
async fn alert(store: &Store, user: &str, cluster: &str) {
    let key =
        AlertKey { cluster: text(cluster), instance: text("i"), user: text(user), part: text("") };
    let id = format!("{user}-{cluster}");
    let body = format!(r#"{{"what":{{"user":"{user}"}}}}"#);
    let event = NewEvent { id: id.clone(), webhook: text("w"), at: at(0), body };
    let raised = Raised { key, id, told: text("{}"), events: vec![event] };
    store.settle_alerts(at(0), &[raised], &[]).await.unwrap();
}

async fn is_over(store: &Store, user: &str) {
    let alerts = store.alerts().await.unwrap();
    for alert in alerts.into_iter().filter(|alert| alert.key.user == user) {
        let ended = Ended { alert: alert.clone(), events: Vec::new() };
        store.settle_alerts(at(1), &[], &[ended]).await.unwrap();
        store.alert_ends_told(&[alert]).await.unwrap();
    }
}

/// Two users of whom the store has one of everything, on two clusters.
async fn store() -> (tempfile::TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&dir.path().join("steward.db")).await.unwrap();
    for (user, job) in [("alice", 1), ("alicea", 11)] {
        for (cluster, more) in [("c1", 0), ("c2", 1)] {
            tell(&store, user, cluster, &format!("{user}-{cluster}")).await;
            let id = cancel(&store, user, job + more, cluster).await;
            store.release_cancel(&id).await.unwrap();
            alert(&store, user, cluster).await;
        }
        let wanted = Wanted {
            user: text(user),
            rule: None,
            cluster: None,
            reason: text("a course"),
            ends: at(1000),
        };
        // This is in the audit log too.
        store.exempt(wanted, "root", at(0)).await.unwrap();
        let author = Author { actor: text(user), reason: text("insert"), at: at(0) };
        let period = ("2026-01-01".parse().unwrap(), "2026-12-31".parse().unwrap());
        let grant = account::opening(None, Limit::Unlimited);
        store.open_account(&format!("of_{user}"), period, &grant, &author).await.unwrap();
    }
    (dir, store)
}

type Counts = Vec<(&'static str, u64)>;

/// What went, and what stays.
fn kinds(forgot: &Forgot) -> (Counts, Counts) {
    (forgot.gone.clone(), forgot.left.iter().map(|left| (left.kind, left.entries)).collect())
}

const BOOKS: [(&str, u64); 3] = [("exemptions", 1), ("audit log", 1), ("ledger", 1)];

#[tokio::test]
async fn what_names_a_user_goes_but_for_what_is_bookkeeping() {
    let (_dir, store) = store().await;
    is_over(&store, "alice").await;
    for event in store.due_events("w", at(10), 100).await.unwrap() {
        store.event_tried("w", &event, at(10), &Tried::Delivered).await.unwrap();
    }
    let (gone, left) = kinds(&store.forget_user("alice", None, at(2)).await.unwrap());
    let all = ["mails", "notices", "quiet times", "cancellations", "alerts", "events"];
    assert_eq!(gone, all.map(|kind| (kind, 2)));
    assert_eq!(left, BOOKS);
    assert!(store.due(at(9)).await.unwrap().iter().all(|one| one.about == "alicea"));
    // Of one whose name only begins like it, all is there.
    let (gone, _) = kinds(&store.forget_user("alicea", None, at(2)).await.unwrap());
    assert_eq!(gone.len(), 5, "his alerts hold: {gone:?}");
    let again = store.forget_user("alice", None, at(2)).await.unwrap();
    assert_eq!(kinds(&again), (vec![], BOOKS.to_vec()));
    assert_eq!(store.forget_user("nobody", None, at(2)).await.unwrap(), Forgot::default());
}

#[tokio::test]
async fn what_is_at_work_stays_and_is_told() {
    let (_dir, store) = store().await;
    let begun = store.due(at(9)).await.unwrap().remove(0);
    assert_eq!((begun.about.as_str(), begun.fate), ("alice", Fate::Planned));
    assert!(store.begin_delivery(&begun, at(1)).await.unwrap());
    cancel(&store, "alice", 1, "c1").await;
    let forgot = store.forget_user("alice", None, at(2)).await.unwrap();
    let (gone, left) = kinds(&forgot);
    let one = |kind| (kind, 1);
    assert_eq!(gone[..2], [one("mails"), ("notices", 2)]);
    assert!(gone.contains(&one("cancellations")));
    let held = [one("mails"), one("cancellations"), ("alerts", 2), ("events", 2)];
    assert_eq!(left, [held.as_slice(), &BOOKS].concat());
    assert!(forgot.left[0].why.contains("again later"));
    // The one who hands it over ends it as ever.
    store.end_delivery(&begun, Fate::Sent, "250", at(3), at(3)).await.unwrap();
    let (gone, _) = kinds(&store.forget_user("alice", None, at(1000)).await.unwrap());
    assert_eq!(gone, [one("mails"), one("cancellations")]);
}

#[tokio::test]
async fn of_one_cluster_only_what_is_of_it_goes() {
    let (_dir, store) = store().await;
    let (gone, left) = kinds(&store.forget_user("alice", Some("c1"), at(2)).await.unwrap());
    assert_eq!(gone, ["mails", "notices", "quiet times", "cancellations"].map(|kind| (kind, 1)));
    assert!(left.starts_with(&[("mails", 1), ("notices", 1), ("quiet times", 1)]), "{left:?}");
    let notices = store.notices(at(0)).await.unwrap();
    let clusters = notices.iter().filter(|one| one.user == "alice").map(|one| one.cluster.as_str());
    assert_eq!(clusters.collect::<Vec<_>>(), ["c2"]);
}

#[tokio::test]
async fn a_user_is_a_whole_word_of_the_audit_log() {
    let (_dir, store) = store().await;
    for subject in ["job 7 of alice on c1", "job 7 of malice on c1", "alice"] {
        let entry = Entry {
            actor: text("root"),
            action: text("cancelled"),
            subject: text(subject),
            detail: text("for alices"),
        };
        store.audit(entry).await.unwrap();
    }
    let forgot = store.forget_user("alice", None, at(2)).await.unwrap();
    assert_eq!(
        kinds(&forgot).1.iter().find(|(kind, _)| *kind == "audit log"),
        Some(&("audit log", 3))
    );
}

#[tokio::test]
async fn a_hold_that_he_asked_for_is_told() {
    let (_dir, store) = store().await;
    let hold = Hold {
        account: text("physics"),
        cluster: text("c1"),
        mechanism: Mechanism::RunningMinutes,
        value: 0,
        previous: None,
        stage: Stage::Held,
        since: at(0),
    };
    store.put_hold(&hold, "alice").await.unwrap();
    let forgot = store.forget_user("alice", None, at(2)).await.unwrap();
    assert_eq!(kinds(&forgot).1.last(), Some(&("holds", 1)));
}
