use super::*;

fn key(job: u32) -> Key {
    let submitted = Timestamp::new(10);
    Key { instance: "i".to_owned(), cluster: "c".to_owned(), job, submitted }
}

fn entry() -> Entry {
    let text = |text: &str| text.to_owned();
    Entry { actor: text("a"), action: text("b"), subject: text("c"), detail: text("d") }
}

#[tokio::test]
async fn one_process_has_a_job_at_a_time_and_what_happened_is_kept_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.db");
    let (store, other) = (Store::open(&path).await.unwrap(), Store::open(&path).await.unwrap());
    let at = Timestamp::new;
    let kept = store.claim_cancel(&key(7), "alice", at(100)).await.unwrap().unwrap();
    assert_eq!(other.claim_cancel(&key(7), "alice", at(101)).await.unwrap(), None);
    let later = at(100).after(LEASE);
    assert!(other.claim_cancel(&key(7), "alice", later).await.unwrap().is_some(), "it died");
    store.release_cancel(&kept.id).await.unwrap();
    store.mark_cancel(&kept.id, Mark::First, at(100), &entry()).await.unwrap();
    store.mark_cancel(&kept.id, Mark::First, at(900), &entry()).await.unwrap();
    let base = Base { at: Some(at(100)), cpu: Some((1.5, 90.0)), io: None };
    store.base_cancel(&kept.id, base).await.unwrap();
    let kept = other.claim_cancel(&key(7), "alice", at(950)).await.unwrap().unwrap();
    assert_eq!((kept.first, kept.second, kept.base), (Some(at(100)), None, base));
    store.reset_cancel(&kept.id, at(960), &entry()).await.unwrap();
    let all = store.cancels().await.unwrap();
    assert_eq!((all.len(), all[0].is_warned(), all[0].base), (1, false, Base::default()));
}

#[tokio::test]
async fn acts_of_an_hour_are_counted_over_all_processes() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.db");
    let (store, other) = (Store::open(&path).await.unwrap(), Store::open(&path).await.unwrap());
    let at = Timestamp::new;
    let act = async |store: &Store, job: u32, now: i64| {
        let kept = store.claim_cancel(&key(job), "alice", at(now)).await.unwrap().unwrap();
        store.release_cancel(&kept.id).await.unwrap();
        store.act_cancel(&kept.id, Act::Signal, 2, at(now), &entry()).await.unwrap()
    };
    assert!(act(&store, 1, 1000).await && act(&other, 2, 2000).await);
    assert!(!act(&store, 3, 3000).await && !act(&other, 3, 4599).await);
    assert!(act(&store, 2, 4599).await, "one that was counted is not counted again");
    assert!(act(&other, 3, 4601).await, "the first was more than an hour ago");
    let all = store.cancels().await.unwrap();
    assert_eq!(all[1].signalled, Some(at(2000)), "the first time stays");
}

#[tokio::test]
async fn only_what_was_proposed_can_be_decided_and_once() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&dir.path().join("a.db")).await.unwrap();
    let at = Timestamp::new;
    let kept = store.claim_cancel(&key(7), "alice", at(100)).await.unwrap().unwrap();
    let yes = Decision::Approved;
    assert!(!store.decide_cancel(&kept.id, &yes, "root", at(100)).await.unwrap());
    store.mark_cancel(&kept.id, Mark::Proposed, at(110), &entry()).await.unwrap();
    let no = Decision::Rejected("a course".to_owned());
    assert!(store.decide_cancel(&kept.id, &no, "root", at(120)).await.unwrap());
    assert!(!store.decide_cancel(&kept.id, &yes, "root", at(130)).await.unwrap());
    let all = store.cancels().await.unwrap();
    assert_eq!(all[0].decision, Some((no, "root".to_owned())));
}
