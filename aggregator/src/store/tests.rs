use std::os::unix::fs::PermissionsExt;

use steward_common::id::{ClusterName, JobId};
use steward_common::time::Timestamp;

use super::*;
use sqlx::Executor;
use sqlx::any::AnyPoolOptions;

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
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("made/steward.db");
    let store = Store::open(&path).await.unwrap();
    add(&store, 100, &[(7, "PENDING"), (8, "PENDING")]).await.unwrap();
    add(&store, 130, &[(7, "RUNNING")]).await.unwrap();
    add(&store, 130, &[(7, "COMPLETED")]).await.unwrap();
    store.close().await;
    let store = Store::open(&path).await.unwrap();
    assert_eq!(states(&store, 7).await, [pair("PENDING", 100), pair("COMPLETED", 130)]);
    let last = store.last_states(&cluster(), job(1)).await.unwrap();
    assert_eq!(last.get(&job(7)).map(String::as_str), Some("COMPLETED"));
    assert_eq!(store.last_states(&cluster(), job(8)).await.unwrap().len(), 1);
    assert_eq!(states(&store, 9).await, []);
    let other = ClusterName::new("c2").unwrap();
    assert_eq!(store.states(&other, job(7)).await.unwrap(), []);
    assert_eq!(store.forget_states(Timestamp::new(130)).await.unwrap(), 2);
    assert_eq!(states(&store, 7).await, [pair("COMPLETED", 130)]);
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "what the service remembers is its own");
}

#[tokio::test]
async fn a_damaged_file_is_told_and_left_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("steward.db");
    std::fs::write(&path, "this is no database, but precious\n".repeat(100)).unwrap();
    let before = std::fs::read(&path).unwrap();
    let error = Store::open(&path).await.unwrap_err();
    assert!(matches!(error.trouble, Trouble::Damaged(_)), "{error}");
    assert!(error.to_string().contains("move it"), "{error}");
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

#[tokio::test]
async fn a_file_that_was_cut_is_told_and_left_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("steward.db");
    let store = Store::open(&path).await.unwrap();
    let many: Vec<(u32, &str)> = (1..5000).map(|number| (number, "PENDING")).collect();
    add(&store, 100, &many).await.unwrap();
    store.close().await;
    let whole = std::fs::read(&path).unwrap();
    let cut = &whole[..whole.len() / 2];
    std::fs::write(&path, cut).unwrap();
    let error = Store::open(&path).await.unwrap_err();
    assert!(matches!(error.trouble, Trouble::Damaged(_)), "{error}");
    assert_eq!(std::fs::read(&path).unwrap(), cut);
}

#[tokio::test]
async fn tables_of_a_newer_version_are_not_touched() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("steward.db");
    let store = Store::open(&path).await.unwrap();
    add(&store, 100, &[(7, "PENDING")]).await.unwrap();
    let newer = "INSERT INTO _sqlx_migrations (version, description, success, checksum, \
                 execution_time) VALUES (99, 'later', TRUE, x'00', 0)";
    sqlx::query(newer).execute(&*store.pool().await.unwrap()).await.unwrap();
    store.close().await;
    let error = Store::open(&path).await.unwrap_err();
    assert!(
        matches!(error.trouble, Trouble::Newer { has: 99, known } if known == open::newest()),
        "{error}"
    );
}

#[tokio::test]
async fn a_full_disk_is_told_and_nothing_is_half_written() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("steward.db");
    let store = Store::open(&path).await.unwrap();
    add(&store, 100, &[(7, "PENDING")]).await.unwrap();
    // Stands for a disk: the same code comes from SQLite in both cases.
    let pool = AnyPoolOptions::new()
        .after_connect(|connection, _| {
            Box::pin(
                async move { connection.execute("PRAGMA max_page_count = 12").await.map(drop) },
            )
        })
        .connect(open::file_url(&path).unwrap().as_str())
        .await
        .unwrap();
    store.open.write().await.pool = pool;
    let many: Vec<(u32, &str)> = (1..5000).map(|number| (number, "RUNNING")).collect();
    let error = add(&store, 130, &many).await.unwrap_err();
    assert!(matches!(error.trouble, Trouble::Full), "{error}");
    assert_eq!(states(&store, 7).await, [pair("PENDING", 100)]);
}

#[tokio::test]
async fn a_writer_that_holds_the_file_is_waited_for_and_then_told() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("steward.db");
    let (one, other) = (Store::open(&path).await.unwrap(), Store::open(&path).await.unwrap());
    add(&one, 90, &[(7, "PENDING")]).await.unwrap();
    let pool = one.pool().await.unwrap();
    let mut holder = pool.begin_with("BEGIN IMMEDIATE").await.unwrap();
    // Readers do not wait.
    assert_eq!(states(&other, 7).await, [pair("PENDING", 90)]);
    let error = add(&other, 100, &[(7, "RUNNING")]).await.unwrap_err();
    assert!(matches!(error.trouble, Trouble::Locked), "{error}");
    sqlx::query("DELETE FROM job_state").execute(&mut *holder).await.unwrap();
    holder.rollback().await.unwrap();
    add(&other, 100, &[(7, "RUNNING")]).await.unwrap();
    assert_eq!(states(&one, 7).await, [pair("PENDING", 90), pair("RUNNING", 100)]);
}

#[tokio::test]
async fn a_file_that_was_deleted_is_noticed_and_begun_anew() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("steward.db");
    let beside = |suffix: &str| dir.path().join(format!("steward.db{suffix}"));
    // With and without what SQLite keeps beside it.
    for (loss, also) in [(1, &[][..]), (2, &["-wal", "-shm"][..])] {
        let store = Store::open(&path).await.unwrap();
        add(&store, 100, &[(7, "PENDING")]).await.unwrap();
        let same = store.clone();
        for round in 1..=loss {
            std::fs::remove_file(&path).unwrap();
            for suffix in also {
                std::fs::remove_file(beside(suffix)).unwrap();
            }
            add(&store, 130, &[(8, "RUNNING")]).await.unwrap();
            assert_eq!((store.losses(), same.losses()), (round, round));
            add(&same, 160, &[(8, "COMPLETED")]).await.unwrap();
        }
        assert_eq!(store.losses(), loss, "one that is there again is no loss");
        assert_eq!(states(&store, 7).await, [], "what was deleted is gone");
        store.close().await;
        // Whoever opens it later finds what was written since.
        let later = Store::open(&path).await.unwrap();
        assert_eq!(states(&later, 8).await, [pair("RUNNING", 130), pair("COMPLETED", 160)]);
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        later.close().await;
        std::fs::remove_file(&path).unwrap();
    }
}

#[tokio::test]
async fn a_file_that_was_moved_is_whole_and_a_backup_in_its_place_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let (path, moved) = (dir.path().join("steward.db"), dir.path().join("moved.db"));
    let backup = dir.path().join("backup.db");
    let other = Store::open(&backup).await.unwrap();
    add(&other, 50, &[(5, "FAILED")]).await.unwrap();
    other.close().await;
    let store = Store::open(&path).await.unwrap();
    add(&store, 100, &[(7, "PENDING")]).await.unwrap();
    std::fs::rename(&path, &moved).unwrap();
    std::fs::rename(&backup, &path).unwrap();
    assert_eq!(states(&store, 5).await, [pair("FAILED", 50)]);
    assert_eq!((states(&store, 7).await, store.losses()), (vec![], 1));
    let moved = Store::open(&moved).await.unwrap();
    assert_eq!(states(&moved, 7).await, [pair("PENDING", 100)]);
}

#[tokio::test]
async fn a_file_that_cannot_be_made_anew_is_tried_again_and_counted_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("steward.db");
    let store = Store::open(&path).await.unwrap();
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, "no database\n".repeat(100)).unwrap();
    for _ in 0..2 {
        let error = add(&store, 100, &[(7, "PENDING")]).await.unwrap_err();
        assert!(matches!(error.trouble, Trouble::Damaged(_)), "{error}");
    }
    std::fs::remove_file(&path).unwrap();
    add(&store, 100, &[(7, "PENDING")]).await.unwrap();
    assert_eq!((states(&store, 7).await, store.losses()), (vec![pair("PENDING", 100)], 1));
}
