//! What rules cost, in numbers, each with its limit beside it: run it as `tests/bench/rules`.

mod measure;
#[allow(dead_code, reason = "shared with the other benchmarks")]
mod report;
#[allow(dead_code, reason = "shared with the other benchmarks")]
mod steward;
#[allow(dead_code, reason = "shared with the other benchmarks")]
mod text;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail, ensure};
use measure::Cost;
use report::{Report, Spread};
use steward::{Archive, Layers, built};
use steward_tests::sacct_text::CLUSTER;
use text::Text;

const RATIO: f64 = 1.5;
/// Megabytes of 1,000,000 bytes, in MiB.
const MEMORY: f64 = 500e6 / 1_048_576.0;
const QUERIES: f64 = 20.0;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.split_first() {
        Some((part, rest)) if part == measure::MEASURED => match measure::measured(rest) {
            // Done in part: nobody answers for slurmctld or Prometheus here.
            Ok(0 | 3) => Ok(true),
            Ok(_) => return ExitCode::FAILURE,
            Err(error) => Err(error),
        },
        _ => Bench::new(&arguments).and_then(|mut bench| bench.run()),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("tests/bench/rules: {error:#}");
            ExitCode::FAILURE
        }
    }
}

struct Bench {
    jobs: u64,
    running: u64,
    rounds: usize,
    cache: PathBuf,
    report: Report,
}

impl Bench {
    fn new(arguments: &[String]) -> Result<Bench> {
        let cache = std::env::var_os("STEWARD_BENCH_CACHE").context("use tests/bench/rules")?;
        let cache = PathBuf::from(cache);
        let mut bench = Bench {
            jobs: 1_000_000,
            running: 100_000,
            rounds: 3,
            cache,
            report: Report::default(),
        };
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            let mut number = || -> Result<u64> {
                let value =
                    arguments.next().with_context(|| format!("{argument} needs a number"))?;
                value.parse().with_context(|| format!("{argument} {value}: not a number"))
            };
            match argument.as_str() {
                "--quick" => (bench.jobs, bench.running) = (50_000, 10_000),
                "--jobs" => bench.jobs = number()?,
                "--rounds" => bench.rounds = usize::try_from(number()?)?,
                _ => bail!("unknown argument {argument}"),
            }
        }
        std::fs::create_dir_all(&bench.cache)?;
        Ok(bench)
    }

    fn run(&mut self) -> Result<bool> {
        println!("What rules cost: {} archived jobs, {} running ones\n", self.jobs, self.running);
        let days = 30;
        let text = Text::with(self.jobs, days, true, &self.cache)?;
        let archive = Archive::new(&self.cache.join("rules"), &text, days, Layers::Jobs)?;
        archive.collect()?;
        let (bytes, _) = archive.sizes()?;
        println!("  archive, jobs layer                      {:8.1} MB", bytes as f64 / 1e6);
        self.archived(&archive)?;
        self.running()?;
        println!();
        let over = self.report.is_over();
        println!("{}", if over { "Over a limit." } else { "Every limit is kept." });
        Ok(!over)
    }

    /// All rules over the archive, against reading it and unpacking the comments.
    fn archived(&mut self, archive: &Archive) -> Result<()> {
        let read = built("examples/read_comments")?;
        let processed = archive.data().join(format!("processed/cluster={CLUSTER}"));
        let bare_command = [read.as_str(), text_of(&processed)?];
        let evaluate = ["evaluate", "--no-collect", "--days", "40", "--format", "csv"];
        let (mut bare, mut whole): (Vec<Cost>, Vec<Cost>) = (Vec::new(), Vec::new());
        measure::cost(&bare_command, &self.cache.join("read"))?;
        for _ in 0..self.rounds {
            bare.push(measure::cost(&bare_command, &self.cache.join("read"))?);
            whole.push(archive.run(&evaluate)?);
        }
        println!("  {}", std::fs::read_to_string(self.cache.join("read"))?.trim());
        let answer = std::fs::read_to_string(self.cache.join("rules/output"))?;
        ensure!(answer.contains("zero-util-gpu-hours"), "the rules found nothing");
        let median = |all: &[Cost]| Spread::of(all.iter().map(|one| one.cpu.as_secs_f64())).median;
        println!("  read the archive, unpack the comments    {:8.2} s CPU", median(&bare));
        let ratio = Spread::of(
            whole.iter().zip(&bare).map(|(one, other)| one.cpu.div_duration_f64(other.cpu)),
        );
        println!(
            "  all rules                                {:8.2} s CPU   {:5.2} times ({:.2} to {:.2})   limit {RATIO}   {}",
            median(&whole),
            ratio.median,
            ratio.low,
            ratio.high,
            self.report.hold(ratio.median, RATIO)
        );
        let memory = whole.iter().map(|one| one.memory).fold(0.0, f64::max);
        println!(
            "  memory                                   {memory:8.1} MiB     limit {MEMORY:.0} MiB   {}",
            self.report.hold(memory, MEMORY)
        );
        Ok(())
    }

    /// How many questions Prometheus is asked about many running jobs.
    fn running(&mut self) -> Result<()> {
        let directory = self.cache.join("running");
        std::fs::create_dir_all(&directory)?;
        let queue = directory.join("squeue.json");
        std::fs::write(&queue, self.queue()?)?;
        let counter = answer_questions(self.running)?;
        let fixtures = std::env::current_dir()?.join("tests/fixtures/snapshot-slurm-22.05");
        let file = |name: &str| fixtures.join(name).display().to_string();
        let config = directory.join("steward.toml");
        let script = directory.join("scontrol");
        let partitions = file("scontrol-show-partitions.txt");
        std::fs::write(
            &script,
            format!(
                "case \"$*\" in\n*--json*) exit 1;;\n*config) echo 'ClusterName = steward';;\n*) cat {partitions};;\nesac\n"
            ),
        )?;
        std::fs::write(
            &config,
            format!(
                "[archive]\ndirectory = {:?}\n[prometheus]\nurl = \"http://{}\"\n[slurm]\nsqueue = [\"sh\", \"-c\", \"cat {}\"]\n\
                 sinfo = [\"sh\", \"-c\", \"cat {}\"]\nscontrol = [\"sh\", {script:?}]\n",
                directory.join("archive"),
                counter.address,
                queue.display(),
                file("sinfo.json")
            ),
        )?;
        let steward = built("steward")?;
        let command =
            [&steward, "--config", text_of(&config)?, "evaluate", "--no-collect", "--json"];
        let output = directory.join("output");
        let cost = measure::cost(&command, &output)?;
        let answer: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&output)?)?;
        let jobs = answer["clusters"][0]["jobs"].as_u64().unwrap_or(0);
        ensure!(jobs == self.running, "{jobs} of {} jobs were looked at", self.running);
        let asked = counter.asked.load(Ordering::Relaxed);
        println!(
            "  questions to Prometheus, {} running jobs {asked:6}         limit {QUERIES:.0}   {}",
            self.running,
            self.report.hold(asked as f64, QUERIES)
        );
        println!("  {:.1} s, {:.0} MiB", cost.wall.as_secs_f64(), cost.memory);
        Ok(())
    }

    /// The queue of a large cluster: copies of a real record.
    fn queue(&self) -> Result<String> {
        let path = "tests/fixtures/snapshot-slurm-22.05/squeue.json";
        let mut all: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(path)?)?;
        let jobs = all["jobs"].as_array().context("no jobs")?;
        let running = jobs.iter().find(|job| job["job_state"] == "RUNNING");
        let mut job = running.context("no running job in the recording")?.clone();
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
        let made: Vec<serde_json::Value> = (0..self.running)
            .map(|number| {
                job["job_id"] = (number + 1).into();
                job["user_name"] = format!("user{:03}", number % 400).into();
                job["submit_time"] = (now - 7200).into();
                job["start_time"] = (now - 3600 - number % 3600).into();
                job["tres_alloc_str"] = "cpu=2,mem=100M,node=1,billing=2,gres/gpu=1".into();
                job.clone()
            })
            .collect();
        all["jobs"] = made.into();
        Ok(all.to_string())
    }
}

fn text_of(path: &Path) -> Result<&str> {
    path.to_str().with_context(|| format!("{path:?}"))
}

/// Stands for Prometheus.
struct Counter {
    address: std::net::SocketAddr,
    asked: Arc<AtomicUsize>,
}

/// Counts questions. Who asks about all jobs gets an answer about all jobs.
fn answer_questions(jobs: u64) -> Result<Counter> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let (address, asked) = (listener.local_addr()?, Arc::new(AtomicUsize::new(0)));
    let counter = Counter { address, asked: Arc::clone(&asked) };
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let asked = Arc::clone(&asked);
            std::thread::spawn(move || {
                // Who has gone does not want an answer.
                let _gone = serve(&stream, jobs, now, &asked);
            });
        }
    });
    Ok(counter)
}

fn serve(stream: &std::net::TcpStream, jobs: u64, now: u64, asked: &AtomicUsize) -> Result<()> {
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    let mut reader = BufReader::new(stream);
    loop {
        let mut length = 0;
        let mut line = String::new();
        while reader.read_line(&mut line)? > 2 {
            let head = line.to_ascii_lowercase();
            if let Some(value) = head.strip_prefix("content-length:") {
                length = value.trim().parse()?;
            }
            line.clear();
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        if length == 0 {
            return Ok(());
        }
        asked.fetch_add(1, Ordering::Relaxed);
        let answer = answer(&String::from_utf8_lossy(&body), jobs, now);
        write!(
            &mut &*stream,
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{answer}",
            answer.len()
        )?;
    }
}

fn answer(query: &str, jobs: u64, now: u64) -> String {
    let series: Vec<String> = if query.contains("jobs_covered_from") {
        let figures = [("from", now - 3000), ("from_last", now - 3000), ("until", now)];
        let one = |job: u64| {
            figures.map(|(figure, value)| {
                format!(
                    "{{\"metric\":{{\"cluster\":\"steward\",\"instance\":\"n1\",\"slurm_job\":\"{job}\",\
                     \"steward_figure\":\"{figure}\"}},\"value\":[{now},\"{value}\"]}}"
                )
            })
        };
        (1..=jobs).flat_map(one).collect()
    } else if query.contains("nvidia_gpu_duty_cycle") {
        let one = |job: u64| {
            format!(
                "{{\"metric\":{{\"jobid\":\"{job}\",\"instance\":\"n1\",\"minor_number\":\"0\",\
                 \"steward_figure\":\"mean\"}},\"value\":[{now},\"50\"]}}"
            )
        };
        (1..=jobs).map(one).collect()
    } else {
        Vec::new()
    };
    format!(
        "{{\"status\":\"success\",\"data\":{{\"resultType\":\"vector\",\"result\":[{}]}}}}",
        series.join(",")
    )
}
