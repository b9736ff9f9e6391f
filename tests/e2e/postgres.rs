//! The store on a real PostgreSQL: what it does on SQLite it does there, and what goes wrong is told.

use std::time::{Duration, Instant};

use steward_aggregator::store::audit::Entry;
use steward_aggregator::store::cancels::{Act, Base, Decision, Key, Mark};
use steward_aggregator::store::exemptions::Wanted;
use steward_aggregator::store::{Place, Store, StoreError, Trouble};
use steward_common::id::{ClusterName, JobId};
use steward_common::time::Timestamp;
use steward_tests::postgres::Postgres;

fn place(postgres: &Postgres) -> Place {
    at(&postgres.url(), postgres)
}

fn at(url: &str, postgres: &Postgres) -> Place {
    Place::Server { address: url.parse().unwrap(), password_file: Some(postgres.password_file()) }
}

fn cluster() -> ClusterName {
    ClusterName::new("c1").unwrap()
}

fn job(number: u32) -> JobId {
    JobId::new(number).unwrap()
}

async fn add(store: &Store, at: i64, states: &[(u32, &str)]) -> Result<(), StoreError> {
    let states: Vec<_> =
        states.iter().map(|(number, state)| (job(*number), (*state).to_owned())).collect();
    store.add_states(&cluster(), Timestamp::new(at), &states).await
}

async fn states(store: &Store, number: u32) -> Vec<(String, i64)> {
    let seen = store.states(&cluster(), job(number)).await.unwrap();
    seen.into_iter().map(|one| (one.state, one.at.get())).collect()
}

fn pair(state: &str, at: i64) -> (String, i64) {
    (state.to_owned(), at)
}

#[tokio::test]
async fn what_was_seen_is_there_after_the_store_was_opened_again() {
    let mut postgres = Postgres::start();
    let store = Store::at(place(&postgres)).await.unwrap();
    add(&store, 100, &[(7, "PENDING"), (8, "PENDING")]).await.unwrap();
    add(&store, 130, &[(7, "RUNNING")]).await.unwrap();
    add(&store, 130, &[(7, "COMPLETED")]).await.unwrap();
    store.close().await;
    let store = Store::at(place(&postgres)).await.unwrap();
    assert_eq!(states(&store, 7).await, [pair("PENDING", 100), pair("COMPLETED", 130)]);
    let last = store.last_states(&cluster(), job(1)).await.unwrap();
    assert_eq!(last.get(&job(7)).map(String::as_str), Some("COMPLETED"));
    assert_eq!(store.last_states(&cluster(), job(8)).await.unwrap().len(), 1);
    let other = ClusterName::new("c2").unwrap();
    assert_eq!(store.states(&other, job(7)).await.unwrap(), []);
    assert_eq!(store.forget_states(Timestamp::new(130)).await.unwrap(), 2);
    // A server that was away is used again when it is back; until then it is told within seconds.
    postgres.stop();
    let began = Instant::now();
    let error = add(&store, 140, &[(9, "PENDING")]).await.unwrap_err();
    assert!(matches!(error.trouble, Trouble::NoAnswer(_)), "{error}");
    assert!(began.elapsed() < Duration::from_secs(40), "{:?}", began.elapsed());
    postgres.resume();
    add(&store, 150, &[(9, "RUNNING")]).await.unwrap();
    assert_eq!(states(&store, 9).await, [pair("RUNNING", 150)]);
    assert_eq!(states(&store, 7).await, [pair("COMPLETED", 130)]);
}

#[tokio::test]
async fn two_that_open_an_empty_database_at_once_both_can() {
    let postgres = Postgres::start();
    let (one, other) = tokio::join!(Store::at(place(&postgres)), Store::at(place(&postgres)));
    let (one, other) = (one.unwrap(), other.unwrap());
    add(&one, 100, &[(7, "PENDING")]).await.unwrap();
    assert_eq!(states(&other, 7).await, [pair("PENDING", 100)]);
}

#[test]
fn a_lock_of_another_is_waited_for_and_then_told() {
    let postgres = Postgres::start();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let store = runtime.block_on(async {
        let store = Store::at(place(&postgres)).await.unwrap();
        add(&store, 90, &[(7, "PENDING")]).await.unwrap();
        store
    });
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let text = "BEGIN; LOCK TABLE job_state IN EXCLUSIVE MODE; SELECT pg_sleep(20)";
            postgres.sql(Postgres::DATABASE, text)
        });
        let held =
            "SELECT count(*) FROM pg_locks WHERE mode = 'ExclusiveLock' AND relation IS NOT NULL";
        steward_tests::wait::until_true("the lock is held", Duration::from_secs(15), || {
            postgres.sql(Postgres::DATABASE, held) == "1"
        });
        runtime.block_on(async {
            // Readers do not wait.
            assert_eq!(states(&store, 7).await, [pair("PENDING", 90)]);
            let began = Instant::now();
            let error = add(&store, 100, &[(7, "RUNNING")]).await.unwrap_err();
            assert!(matches!(error.trouble, Trouble::Locked), "{error}");
            assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
        });
    });
    runtime.block_on(async {
        add(&store, 100, &[(7, "RUNNING")]).await.unwrap();
        assert_eq!(states(&store, 7).await, [pair("PENDING", 90), pair("RUNNING", 100)]);
    });
}

#[tokio::test]
async fn what_is_wrong_is_said_with_what_to_do_and_without_the_password() {
    let mut postgres = Postgres::start();
    let told = |error: StoreError| {
        let (text, debug) = (error.to_string(), format!("{error:?}"));
        for text in [&text, &debug] {
            assert!(!text.contains("s3cret"), "{text}");
        }
        (text, error.trouble)
    };
    let url = postgres.url();
    let absent = format!("{}absent", url.trim_end_matches(Postgres::DATABASE));
    let (text, trouble) = told(Store::at(at(&absent, &postgres)).await.unwrap_err());
    assert!(matches!(trouble, Trouble::NoDatabase(_)) && text.contains("createdb"), "{text}");
    let wrong = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(wrong.path(), "s3cret but wrong\n").unwrap();
    let with = |path: &std::path::Path| Place::Server {
        address: url.parse().unwrap(),
        password_file: Some(path.to_owned()),
    };
    let (text, trouble) = told(Store::at(with(wrong.path())).await.unwrap_err());
    assert!(matches!(trouble, Trouble::NotLetIn(_)), "{text}");
    assert!(text.contains("store.password_file"), "{text}");
    let (text, _) = told(Store::at(with("/nonexistent".as_ref())).await.unwrap_err());
    assert!(text.contains("/nonexistent") && text.contains("store.password_file"), "{text}");
    // Who may read but not make tables.
    let guest = "CREATE ROLE guest LOGIN PASSWORD 's3cret guest'";
    postgres.sql(Postgres::DATABASE, guest);
    std::fs::write(wrong.path(), "s3cret guest").unwrap();
    let guest = Place::Server {
        address: url.replace("steward@", "guest@").parse().unwrap(),
        password_file: Some(wrong.path().to_owned()),
    };
    let (text, trouble) = told(Store::at(guest).await.unwrap_err());
    assert!(matches!(trouble, Trouble::NotAllowed(_)) && text.contains("owner"), "{text}");
    // A newer steward was there.
    Store::at(place(&postgres)).await.unwrap().close().await;
    let newer = "INSERT INTO _sqlx_migrations (version, description, success, checksum, \
                 execution_time) VALUES (99, 'later', TRUE, '\\x00', 0)";
    postgres.sql(Postgres::DATABASE, newer);
    let (text, trouble) = told(Store::at(place(&postgres)).await.unwrap_err());
    assert!(matches!(trouble, Trouble::Newer { has: 99, .. }), "{text}");
    postgres.stop();
    let began = Instant::now();
    let (text, trouble) = told(Store::at(place(&postgres)).await.unwrap_err());
    assert!(matches!(trouble, Trouble::NoAnswer(_)) && text.contains("store.url"), "{text}");
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_server_that_takes_the_connection_and_says_nothing_is_left() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("postgres://steward@{}/steward", silent.local_addr().unwrap());
    let place = Place::Server { address: url.parse().unwrap(), password_file: None };
    let began = Instant::now();
    let error = Store::at(place).await.unwrap_err();
    assert!(matches!(error.trouble, Trouble::NoAnswer(_)), "{error}");
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
}

/// Every question about exemptions and cancellations, with what is there and with what is not.
#[tokio::test]
async fn exemptions_and_cancellations_are_kept_as_on_sqlite() {
    let postgres = Postgres::start();
    let store = Store::at(place(&postgres)).await.unwrap();
    let now = Timestamp::new;
    let wanted = |user: &str, rule: Option<&str>| Wanted {
        user: user.to_owned(),
        rule: rule.map(str::to_owned),
        cluster: None,
        reason: "a 'reason' with \"signs\"; é".to_owned(),
        ends: now(2000),
    };
    let one = store.exempt(wanted("alice", None), "root", now(1000)).await.unwrap();
    let two = store.exempt(wanted("bob", Some("low-cpu")), "root", now(1001)).await.unwrap();
    assert_eq!(store.exemptions_at(now(1999)).await.unwrap(), [one.clone(), two.clone()]);
    assert!(store.remove_exemption(&two.id, "carol", now(1500)).await.unwrap());
    assert!(!store.remove_exemption(&two.id, "carol", now(1500)).await.unwrap());
    assert_eq!(store.exemptions_at(now(1999)).await.unwrap(), [one]);
    assert_eq!(store.audited(now(0)).await.unwrap().len(), 3);

    let key = |job: u32| Key {
        instance: "i".to_owned(),
        cluster: "c1".to_owned(),
        job,
        submitted: now(10),
    };
    let entry = store.audited(now(0)).await.unwrap().remove(0).entry;
    let kept = store.claim_cancel(&key(7), "alice", now(100)).await.unwrap().unwrap();
    assert_eq!((kept.first, kept.base, &kept.decision), (None, Base::default(), &None));
    assert_eq!(store.claim_cancel(&key(7), "alice", now(101)).await.unwrap(), None);
    store.release_cancel(&kept.id).await.unwrap();
    let base = Base { at: Some(now(100)), cpu: Some((1.5, 90.25)), io: None };
    store.base_cancel(&kept.id, base).await.unwrap();
    for mark in [Mark::First, Mark::Second, Mark::Sliding, Mark::Proposed] {
        store.mark_cancel(&kept.id, mark, now(110), &entry).await.unwrap();
    }
    let no = Decision::Rejected("course".to_owned());
    assert!(store.decide_cancel(&kept.id, &no, "root", now(120)).await.unwrap());
    let seen = store.cancels().await.unwrap().remove(0);
    assert_eq!((seen.first, seen.sliding, seen.base), (Some(now(110)), Some(now(110)), base));
    assert_eq!(seen.decision, Some((no, "root".to_owned())));
    assert!(store.act_cancel(&kept.id, Act::Signal, 1, now(130), &entry).await.unwrap());
    assert!(store.act_cancel(&kept.id, Act::Kill, 1, now(131), &entry).await.unwrap());
    let other = store.claim_cancel(&key(8), "bob", now(132)).await.unwrap().unwrap();
    assert!(!store.act_cancel(&other.id, Act::Kill, 1, now(132), &entry).await.unwrap());
    for mark in [Mark::Sent, Mark::Killed, Mark::Told] {
        store.mark_cancel(&kept.id, mark, now(140), &entry).await.unwrap();
    }
    store.reset_cancel(&kept.id, now(150), &entry).await.unwrap();
    let fresh = store.claim_cancel(&key(7), "alice", now(160)).await.unwrap().unwrap();
    assert_ne!(fresh.id, kept.id);
    assert_eq!(
        (fresh.is_warned(), fresh.is_acted_on(), fresh.base),
        (false, false, Base::default())
    );
    let forgot = store.forget_user("bob", Some("c1"), now(10_000)).await.unwrap();
    assert_eq!(forgot.gone, [("cancellations", 1)]);
    let left: Vec<_> = forgot.left.iter().map(|one| (one.kind, one.entries)).collect();
    assert_eq!(left, [("exemptions", 1), ("audit log", 2)]);
    store.forget_cancels(now(10_000)).await.unwrap();
    assert!(store.cancels().await.unwrap().is_empty());
}

/// Of many who ask at once, one gets a job, and so many may act as are allowed.
#[tokio::test]
async fn what_two_processes_might_both_do_is_done_by_one() {
    let postgres = Postgres::start();
    let (one, other) =
        (Store::at(place(&postgres)).await.unwrap(), Store::at(place(&postgres)).await.unwrap());
    let now = Timestamp::new(1000);
    let key = |job: u32| Key {
        instance: "i".to_owned(),
        cluster: "c1".to_owned(),
        job,
        submitted: Timestamp::new(10),
    };
    let mut ids = Vec::new();
    for job in 1..=10 {
        let key = key(job);
        let (a, b) = tokio::join!(
            one.claim_cancel(&key, "alice", now),
            other.claim_cancel(&key, "alice", now)
        );
        let got: Vec<_> = [a.unwrap(), b.unwrap()].into_iter().flatten().collect();
        assert_eq!(got.len(), 1, "one of the two");
        ids.push(got[0].id.clone());
    }
    let entry = Entry {
        actor: "a".to_owned(),
        action: "b".to_owned(),
        subject: "c".to_owned(),
        detail: String::new(),
    };
    let mut acts = 0;
    for pair in ids.chunks(2) {
        let (a, b) = tokio::join!(
            one.act_cancel(&pair[0], Act::Kill, 3, now, &entry),
            other.act_cancel(&pair[1], Act::Kill, 3, now, &entry)
        );
        acts += u32::from(a.unwrap()) + u32::from(b.unwrap());
    }
    assert_eq!(acts, 3);
}
