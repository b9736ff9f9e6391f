use std::path::Path;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::task::JoinHandle;

use super::client::{AskError, ask};
use super::handler::status::Status;
use super::*;
use crate::shutdown::Stopper;

pub(super) fn config(dir: &Path) -> Config {
    let mut config = Config::default();
    config.serve.listen = ([127, 0, 0, 1], 0).into();
    config.serve.socket = dir.join("s.sock");
    config.serve.state = dir.join("state");
    config.archive.directory = crate::config::Location::Directory(dir.join("archive"));
    // It would ask the Slurm of this machine.
    config.collect.enabled = false;
    config.evaluate.enabled = false;
    config.exporter.enabled = false;
    config
}

pub(super) struct Running {
    address: SocketAddr,
    pub(super) board: Arc<Board>,
    store: Store,
    stopper: Stopper,
    ended: JoinHandle<anyhow::Result<()>>,
}

impl Running {
    pub(super) async fn start(config: Config) -> Self {
        let service = Service::new(config).await.unwrap();
        let address = service.address().unwrap();
        let (board, store) = (Arc::clone(&service.state.board), service.state.store.clone());
        let (stopper, shutdown) = shutdown::channel();
        let ended = tokio::spawn(service.run(async move { shutdown.wait().await }));
        Self { address, board, store, stopper, ended }
    }

    /// Waits until the states in which job `id` of cluster c1 was seen are such.
    pub(super) async fn until_states(&self, id: u32, are: impl Fn(&[String]) -> bool) {
        let cluster = steward_common::id::ClusterName::new("c1").unwrap();
        let job = steward_common::id::JobId::new(id).unwrap();
        for _ in 0..300 {
            let seen = self.store.states(&cluster, job).await.unwrap();
            let states: Vec<String> = seen.into_iter().map(|one| one.state).collect();
            if are(&states) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("the states of job {id} did not come");
    }

    pub(super) async fn get(&self, path: &str) -> (u16, String) {
        let answer = reqwest::get(format!("http://{}{path}", self.address)).await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    }

    /// Sends a request; gives the status, the type of the answer and its text.
    pub(super) async fn send(&self, method: &str, path: &str) -> (u16, String, String) {
        let method = method.parse::<reqwest::Method>().unwrap();
        let address = format!("http://{}{path}", self.address);
        let answer = reqwest::Client::new().request(method, address).send().await.unwrap();
        let kind = answer.headers().get("content-type");
        let kind = kind.map(|kind| kind.to_str().unwrap().to_owned()).unwrap_or_default();
        (answer.status().as_u16(), kind, answer.text().await.unwrap())
    }

    /// Waits until /healthz says so.
    pub(super) async fn wait_for(&self, health: &str) {
        for _ in 0..300 {
            if self.get("/healthz").await.1 == health {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("{health:?} did not come: {:?}", self.get("/healthz").await);
    }

    pub(super) async fn stop(self) {
        self.stopper.stop();
        let ended = tokio::time::timeout(Duration::from_secs(10), self.ended).await;
        ended.expect("it ends within seconds").unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_service_leads_shows_its_metrics_answers_and_leaves_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let mut settings = config(dir.path());
    settings.pushgateway.url = Some("http://127.0.0.1:9".to_owned());
    settings.pushgateway.schedule = "* * * * * *".parse().unwrap();
    let service = Running::start(settings).await;
    service.wait_for("ok: leader\n").await;
    // Nobody listens at that gateway: the task fails, the service does not.
    let failed = "steward_task_runs_total{task=\"pushgateway\",result=\"failed\"} ";
    let page = loop {
        let (code, page) = service.get("/metrics").await;
        assert_eq!(code, 200);
        let line = page.lines().find_map(|line| line.strip_prefix(failed)).unwrap();
        if line != "0" {
            break page;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    for line in ["steward_leader 1", "steward_pushgateway_groups_deleted_total 0"] {
        assert!(page.lines().any(|own| own == line), "{line} is not in\n{page}");
    }
    assert!(page.contains("steward_task_last_failure_timestamp_seconds{task=\"pushgateway\"} "));
    assert!(!page.contains("steward_task_last_success_timestamp_seconds{"));
    for line in page.lines().filter(|line| !line.starts_with('#')) {
        let name = line.split(['{', ' ']).next().unwrap();
        assert!(steward_common::metric::find(name).is_some(), "{name} is not in the catalogue");
    }
    let socket = dir.path().join("s.sock");
    let status: Status = ask(&socket, "status", ()).await.unwrap();
    assert_eq!(status.role, "leader");
    assert_eq!(status.you.uid, nix::unistd::geteuid().as_raw());
    assert!(status.tasks[0].error.as_ref().unwrap().contains("127.0.0.1:9"));
    service.stop().await;
    assert!(!socket.exists());
}

#[tokio::test]
async fn the_second_service_waits_and_takes_over() {
    let dir = tempfile::tempdir().unwrap();
    let first = Running::start(config(dir.path())).await;
    first.wait_for("ok: leader\n").await;
    let mut settings = config(dir.path());
    settings.serve.socket = dir.path().join("second.sock");
    let second = Running::start(settings).await;
    second.wait_for("ok: standby\n").await;
    assert!(second.get("/metrics").await.1.contains("\nsteward_leader 0\n"));
    first.stop().await;
    second.wait_for("ok: leader\n").await;
    second.stop().await;
}

/// An archive whose manifest has these clusters, each covered up to a second.
fn archive(dir: &Path, clusters: &[(&str, i64)]) {
    use steward_common::time::Timestamp;
    use steward_common::window::Window;

    let mut manifest = crate::archive::manifest::Manifest::default();
    for (name, until) in clusters {
        let cluster = manifest.clusters.entry((*name).to_owned()).or_default();
        let window = Window::new(Timestamp::new(1_000), Timestamp::new(*until)).unwrap();
        cluster.covered.add(window);
    }
    std::fs::create_dir_all(dir.join("archive")).unwrap();
    let text = serde_json::to_string(&manifest).unwrap();
    std::fs::write(dir.join("archive/manifest.json"), text).unwrap();
}

/// Settings of a service whose Slurm answers nothing, at the time of its next collection.
fn collecting(dir: &Path, schedule: &str) -> Config {
    let mut config = config(dir);
    config.collect.enabled = true;
    config.collect.schedule = schedule.parse().unwrap();
    let fails = vec!["false".to_owned()];
    (config.slurm.sacct, config.slurm.scontrol) = (fails.clone(), fails);
    config.slurm.retries = 0;
    config
}

const COVERED: &str = "steward_archive_covered_until_timestamp_seconds{";
const NEVER: &str = "0 0 1 1 *";

async fn until_page(service: &Running, is_so: impl Fn(&str) -> bool) -> String {
    for _ in 0..300 {
        let page = service.get("/metrics").await.1;
        if is_so(&page) {
            return page;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("waited in vain: {}", service.get("/metrics").await.1);
}

#[tokio::test]
async fn what_the_archive_covers_is_told_from_the_start_on_and_by_the_leader_only() {
    let dir = tempfile::tempdir().unwrap();
    archive(dir.path(), &[("old", 2_000), ("tux", 5_000)]);
    let mut settings = collecting(dir.path(), NEVER);
    settings.slurm.clusters = vec!["tux".parse().unwrap(), "new".parse().unwrap()];
    let service = Running::start(settings.clone()).await;
    let page = until_page(&service, |page| page.contains(COVERED)).await;
    assert!(page.contains(&format!("{COVERED}cluster=\"tux\"}} 5000\n")), "{page}");
    assert_eq!(page.matches(COVERED).count(), 1, "old is not asked, of new nothing is known");
    settings.serve.socket = dir.path().join("second.sock");
    let second = Running::start(settings).await;
    second.wait_for("ok: standby\n").await;
    // What is there when it takes over.
    archive(dir.path(), &[("tux", 6_000)]);
    assert!(!second.get("/metrics").await.1.contains(COVERED));
    service.stop().await;
    let now = format!("{COVERED}cluster=\"tux\"}} 6000\n");
    until_page(&second, |page| page.contains(&now)).await;
    second.stop().await;
}

#[tokio::test]
async fn a_collection_that_fails_still_tells_what_the_archive_covers() {
    let dir = tempfile::tempdir().unwrap();
    archive(dir.path(), &[("tux", 5_000)]);
    // Nobody says which cluster this is: the archive has but one.
    let service = Running::start(collecting(dir.path(), "* * * * * *")).await;
    let line = |until| format!("{COVERED}cluster=\"tux\"}} {until}\n");
    until_page(&service, |page| page.contains(&line(5_000))).await;
    // Somebody collects by hand.
    archive(dir.path(), &[("tux", 7_000)]);
    until_page(&service, |page| page.contains(&line(7_000))).await;
    // An archive that cannot be read any more is no reason to forget it.
    std::fs::write(dir.path().join("archive/manifest.json"), "{").unwrap();
    let failed = |page: &str| -> Option<u64> {
        let name = "steward_task_runs_total{task=\"collect\",result=\"failed\"} ";
        page.lines().find_map(|line| line.strip_prefix(name))?.parse().ok()
    };
    let before = failed(&service.get("/metrics").await.1).unwrap();
    let page = until_page(&service, |page| failed(page) > Some(before + 1)).await;
    assert!(page.contains(&line(7_000)), "{page}");
    service.stop().await;
    let again = Running::start(collecting(dir.path(), "* * * * * *")).await;
    let page = until_page(&again, |page| failed(page) > Some(0)).await;
    assert!(!page.contains(COVERED), "{page}");
    again.stop().await;
}

#[tokio::test]
async fn what_is_no_request_is_refused_in_words() {
    let dir = tempfile::tempdir().unwrap();
    let service = Running::start(config(dir.path())).await;
    let socket = dir.path().join("s.sock");
    let unknown = ask::<Status>(&socket, "sudo", ()).await;
    assert!(
        matches!(unknown, Err(AskError::BadInput(why)) if why.0.contains("known: analyze, current, jobs, nodes, status"))
    );
    for (text, part) in [
        ("nonsense\n".to_owned(), "no request"),
        ("{\"command\":\"status\",\"as\":\"root\"}\n".to_owned(), "unknown field"),
        ("x".repeat(100_000), "too long"),
    ] {
        let mut stream = UnixStream::connect(&socket).await.unwrap();
        // It may stop to listen before it has heard all.
        drop(stream.write_all(text.as_bytes()).await);
        drop(stream.shutdown().await);
        let mut answer = String::new();
        drop(stream.read_to_string(&mut answer).await);
        assert!(answer.contains(part) || text.len() > 65_536, "{part}: {answer}");
    }
    let page = service.get("/metrics").await.1;
    assert!(page.contains("steward_requests_total{command=\"unknown\",result=\"failed\"} "));
    service.stop().await;
    let gone = ask::<Status>(&socket, "status", ()).await;
    assert!(matches!(gone, Err(AskError::NoService { .. })));
}

#[tokio::test]
async fn a_client_that_says_nothing_does_not_hold_up_the_end() {
    let dir = tempfile::tempdir().unwrap();
    let service = Running::start(config(dir.path())).await;
    let _silent = UnixStream::connect(dir.path().join("s.sock")).await.unwrap();
    let _silent_too = tokio::net::TcpStream::connect(service.address).await.unwrap();
    service.wait_for("ok: leader\n").await;
    service.stop().await;
}

#[tokio::test]
async fn constants_are_served_with_the_rest_and_alone() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = config(dir.path());
    let labels = [("cluster".to_owned(), "tuxedo".to_owned())].into();
    let name = "allocated_gpu_years".to_owned();
    config.exporter.constants = vec![crate::config::Constant { name, value: 120.5, labels }];
    let running = Running::start(config).await;
    running.wait_for("ok: leader\n").await;
    let line = "steward_constant{name=\"allocated_gpu_years\",cluster=\"tuxedo\"} 120.5\n";
    let (code, alone) = running.get("/metrics/constants").await;
    assert_eq!(code, 200);
    assert!(alone.ends_with(line) && alone.starts_with("# HELP steward_constant "), "{alone}");
    let (_, all) = running.get("/metrics").await;
    assert!(all.contains(line) && all.contains("steward_leader 1\n"), "{all}");
    running.stop().await;
}
