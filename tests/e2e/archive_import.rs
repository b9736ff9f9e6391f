//! An archive of slurm-usage, written by the polars that it uses, is taken over.

use std::time::{SystemTime, UNIX_EPOCH};

use steward_tests::archive::{Site, assert_same, rows};
use steward_tests::python;
use steward_tests::sacct_text::{CLUSTER, Recipe};

const COLLECT: [&str; 4] = ["collect", "--days", "4", "--no-summary"];

/// Writes `processed/D.parquet` with the columns and types of slurm-usage: a few jobs of a summer
/// and a winter day, and those that the first argument has as JSON.
pub const WRITE: &str = r#"
import datetime, json, pathlib, sys
import polars as pl

UTC = datetime.timezone.utc
def at(text):
    return datetime.datetime.fromisoformat(text).replace(tzinfo=UTC) if text else None

def job(id, user, state, submit, start, end, elapsed, cpus, req, rss, cpu, gpus):
    held = elapsed * cpus
    return dict(
        job_id=id, user=user, job_name="name of " + id, partition="cpu", state=state,
        submit_time=at(submit), start_time=at(start), end_time=at(end), node_list="n[1-2]",
        elapsed_seconds=elapsed, alloc_cpus=cpus, req_mem_mb=req, max_rss_mb=rss,
        total_cpu_seconds=cpu, alloc_gpus=gpus,
        cpu_efficiency=min(100.0, 100 * cpu / held) if held else 0.0,
        memory_efficiency=min(100.0, 100 * rss / req) if req and rss else 0.0,
        cpu_hours_wasted=max(0.0, (held - cpu) / 3600),
        memory_gb_hours_wasted=max(0.0, (req - rss) * elapsed / 1024 / 3600),
        cpu_hours_reserved=held / 3600, memory_gb_hours_reserved=req / 1024 * elapsed / 3600,
        gpu_hours_reserved=gpus * elapsed / 3600,
        is_complete=state not in ("RUNNING", "PENDING"))

def write(date, jobs):
    frame = pl.DataFrame([{**job, "processed_date": date} for job in jobs], schema_overrides={
        name: pl.Datetime("us", "UTC") for name in ("submit_time", "start_time", "end_time")})
    path = pathlib.Path("usage/processed")
    path.mkdir(parents=True, exist_ok=True)
    frame.write_parquet(path / (date + ".parquet"))

summer = [
    job("100", "ann", "COMPLETED", "2026-07-01T10:00:00", "2026-07-01T11:00:00", "2026-07-01T12:00:00", 3600, 2, 1024.0, 512.0, 1800.0, 2),
    job("101_7", "bob", "FAILED", "2026-07-01T10:00:00", "2026-07-01T11:00:00", "2026-07-01T12:00:00", 3600, 1, 1024.0, 0.0, 0.0, 0),
    job("101_8", "bob", "TIMEOUT", "2026-07-01T10:00:00", "2026-07-01T11:00:00", "2026-07-01T12:00:00", 3600, 1, 1024.0, 8.0, 60.0, 0),
    job("102", "uid_7", "CANCELLED", "2026-07-01T10:00:00", None, "2026-07-01T10:05:00", 0, 1, 0.0, 0.0, 0.0, 0),
    job("103", "ann", "PENDING", "2026-07-01T10:00:00", None, None, 0, 1, 1024.0, 0.0, 0.0, 0),
]
# The same job once more, as slurm-usage may have it; the newer row is right.
write("2026-06-30", [{**summer[0], "total_cpu_seconds": 1.0}])
write("2026-07-01", summer)
write("2026-01-15", [job("90+1", "ann", "COMPLETED", "2026-01-15T23:00:00", "2026-01-15T23:10:00", "2026-01-16T00:10:00", 3600, 4, 4096.0, 1.0, 7200.0, 0)])
known = json.loads(sys.argv[1])
write("2026-11-01", [job(id, user, "COMPLETED", submit, submit, end, 10, 1, 1.0, 1.0, 1.0, 0) for id, user, submit, end in known])
"#;

/// A value of a row.
fn value<'a>(row: &'a str, column: &str) -> &'a str {
    let start = row.find(&format!(" {column}=")).unwrap_or_else(|| panic!("{column}: {row}"));
    let rest = &row[start + column.len() + 2..];
    // Times have spaces in them.
    let end = rest.find('=').map_or(rest.len(), |equal| rest[..equal].rfind(' ').unwrap());
    &rest[..end]
}

#[test]
fn an_archive_of_slurm_usage_is_taken_over_once() {
    let site = Site::default();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let recipe = Recipe { jobs: 400, days: 3, seed: 11, now, comments: false };
    recipe.write(&site.new_text()).unwrap();
    site.steward(&COLLECT);
    let collected = rows(&site.data(), "processed", &[]);
    // Some of these jobs, an array's tasks among them, as slurm-usage in Berlin saw them.
    let known: Vec<[String; 4]> = collected
        .iter()
        .filter(|row| value(row, "end_time") != "null")
        .filter(|row| value(row, "job_id").contains('_') || row.contains("user=user000"))
        .map(|row| {
            let local = |column| {
                let utc = value(row, column).replace(" +00:00", "");
                let (date, time) = utc.split_once(' ').unwrap();
                let (hour, rest) = time.split_once(':').unwrap();
                // Berlin is an hour ahead in winter; none of these is near midnight's end.
                let hour: u32 = hour.parse().unwrap();
                (hour < 23).then(|| format!("{date}T{:02}:{rest}", hour + 1))
            };
            let texts = |name| Some(value(row, name).to_owned());
            [texts("job_id"), texts("user"), local("submit_time"), local("end_time")]
        })
        .filter_map(|texts| {
            let [Some(id), Some(user), Some(submit), Some(end)] = texts else { return None };
            Some([id, user, submit, end])
        })
        .collect();
    assert!(known.iter().any(|[id, ..]| id.contains('_')) && known.len() > 10, "{known:?}");
    let directory = site.beside("");
    python::script(WRITE, &[&serde_json::to_string(&known).unwrap()], &directory, &[]);
    let usage = site.beside("usage").display().to_string();
    let import =
        ["import", "slurm-usage", &usage, "--cluster", CLUSTER, "--time-zone", "Europe/Berlin"];
    let said = site.steward(&import);
    for line in [
        "5 runs were taken over".to_owned(),
        format!("  {} runs are here already", known.len() + 1),
        "  1 had not ended when slurm-usage saw it last".to_owned(),
    ] {
        assert!(said.lines().any(|one| one == line), "{line:?} is not in {said}");
    }
    let all = rows(&site.data(), "processed", &[]);
    let taken: Vec<String> = all.iter().filter(|row| !collected.contains(row)).cloned().collect();
    assert_eq!(taken.len(), 5);
    assert_eq!(all.len(), collected.len() + 5);
    let of = |id: &str| {
        taken.iter().find(|row| value(row, "job_id") == id).unwrap_or_else(|| panic!("{id}"))
    };
    for (id, column, expected) in [
        ("100", "job_id_raw", "100"),
        ("100", "submit_time", "2026-07-01 08:00:00.000 +00:00"),
        ("100", "total_cpu_seconds", "1800.0"),
        ("100", "cpu_efficiency", "25.0"),
        ("100", "memory_efficiency", "50.0"),
        ("100", "cpu_source", "import"),
        ("100", "memory_source", "import"),
        ("100", "alloc_gpus", "2"),
        ("100", "node_list", "n[1-2]"),
        ("101_7", "max_rss_mb", "null"),
        ("101_7", "total_cpu_seconds", "null"),
        ("101_7", "cpu_efficiency", "null"),
        ("101_7", "cpu_source", "null"),
        ("101_7", "steps", "null"),
        ("101_7", "array_task_id", "7"),
        ("102", "req_mem_mb", "null"),
        ("102", "uid", "7"),
        ("102", "start_time", "null"),
        ("90+1", "end_time", "2026-01-15 23:10:00.000 +00:00"),
        ("90+1", "het_offset", "1"),
    ] {
        assert_eq!(value(of(id), column), expected, "{column} of {id}");
    }
    assert!(of("90+1").starts_with("processed/cluster=bench/2026-01-15.parquet"));
    assert_ne!(value(of("101_7"), "job_id_raw"), value(of("101_8"), "job_id_raw"));
    // A second time there is nothing new, and that is fine; something new is not.
    let said = site.steward(&import);
    assert!(said.starts_with("0 runs were taken over"), "{said}");
    assert_same(&rows(&site.data(), "processed", &[]), &all, "taken over twice");
    site.steward(&["archive", "rebuild"]);
    assert_same(&rows(&site.data(), "processed", &[]), &all, "rebuilt");
    let more = r#"[["555", "ann", "2026-11-01T10:00:00", "2026-11-01T11:00:00"]]"#;
    python::script(WRITE, &[more], &directory, &[]);
    let refused = site.run(&site.data(), &import);
    let why = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(1), "{why}");
    assert!(why.contains("it was taken over on ") && why.contains("1 run of it is new"), "{why}");
    // A forgotten user goes from here, too.
    site.steward(&["archive", "forget-user", "bob", "--yes"]);
    site.steward(&["archive", "rebuild"]);
    let left = rows(&site.data(), "processed", &[]);
    assert_eq!(left.len(), all.len() - 2);
    assert!(!rows(&site.data(), "raw", &[]).iter().any(|row| row.contains("\"bob\"")));
}

#[test]
fn what_sacct_tells_of_a_task_later_counts() {
    let site = Site::default();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let recipe = Recipe { jobs: 400, days: 3, seed: 11, now, comments: false };
    recipe.write(&site.new_text()).unwrap();
    let one = site.beside("one");
    assert!(site.run(&one, &COLLECT).status.success());
    let expected = rows(&one, "processed", &["collected_at"]);
    let known: Vec<[String; 4]> = expected
        .iter()
        .filter(|row| value(row, "job_id").contains('_') && value(row, "end_time") != "null")
        .map(|row| {
            let utc = |column| value(row, column).replace(" +00:00", "").replacen(' ', "T", 1);
            [value(row, "job_id").to_owned(), "x".to_owned(), utc("submit_time"), utc("end_time")]
        })
        .collect();
    assert!(known.len() > 3, "{known:?}");
    python::script(WRITE, &[&serde_json::to_string(&known).unwrap()], &site.beside(""), &[]);
    let usage = site.beside("usage").display().to_string();
    let import = ["import", "slurm-usage", &usage, "--cluster", CLUSTER, "--time-zone", "UTC"];
    site.steward(&import);
    let processed = || rows(&site.data(), "processed", &["collected_at"]);
    assert_eq!(processed().len(), known.len() + 5);
    site.steward(&COLLECT);
    let without_import = |rows: Vec<String>| -> Vec<String> {
        rows.into_iter().filter(|row| !row.contains("job_name=name of ")).collect()
    };
    assert_eq!(processed().len(), expected.len() + 5);
    assert_same(&without_import(processed()), &expected, "collected");
    let all = processed();
    site.steward(&["archive", "rebuild"]);
    assert_same(&processed(), &all, "rebuilt");
}
