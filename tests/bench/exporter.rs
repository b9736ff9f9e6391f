//! What the cluster exporter costs, in numbers, each with its limit beside it: run it as
//! `tests/bench/exporter`.

mod child;
mod cluster_json;
mod measure;
mod report;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use child::Running;
use measure::Cost;
use nix::sys::signal::Signal;
use report::{Report, Spread, mark, ms};

/// Times the bare reading of the same JSON.
const RATIO: f64 = 3.0;
/// MiB.
const MEMORY: f64 = 300.0;
/// Part of a snapshot's CPU time that a scrape may cost.
const SCRAPE: f64 = 0.01;
/// Scrapes that are measured together.
const SCRAPES: u32 = 50;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.split_first() {
        Some((part, rest)) if part == measure::MEASURED => match measure::measured(rest) {
            Ok(0) => Ok(true),
            Ok(_) => return ExitCode::FAILURE,
            Err(error) => Err(error),
        },
        _ => Bench::new(&arguments).and_then(|mut bench| bench.run()),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("tests/bench/exporter: {error:#}");
            ExitCode::FAILURE
        }
    }
}

struct Bench {
    nodes: u64,
    jobs: u64,
    rounds: usize,
    cache: PathBuf,
    report: Report,
}

/// Where cargo put a program: beside this one.
fn built(name: &str) -> Result<String> {
    let path = std::env::current_exe()?.with_file_name(name);
    ensure!(path.is_file(), "{} is not built: use tests/bench/exporter", path.display());
    Ok(path.display().to_string())
}

impl Bench {
    fn new(arguments: &[String]) -> Result<Bench> {
        let cache = std::env::var_os("STEWARD_BENCH_CACHE").context("use tests/bench/exporter")?;
        let cache = PathBuf::from(cache);
        let report = Report::default();
        let mut bench = Bench { nodes: 10_000, jobs: 100_000, rounds: 3, cache, report };
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            let mut number = || -> Result<u64> {
                let value =
                    arguments.next().with_context(|| format!("{argument} needs a number"))?;
                value.parse().with_context(|| format!("{argument} {value}: not a number"))
            };
            match argument.as_str() {
                "--quick" => (bench.nodes, bench.jobs) = (1000, 10_000),
                "--nodes" => bench.nodes = number()?,
                "--jobs" => bench.jobs = number()?,
                "--rounds" => bench.rounds = usize::try_from(number()?)?,
                _ => bail!("unknown argument {argument}"),
            }
        }
        Ok(bench)
    }

    /// Measures and prints; whether all is within its limits.
    fn run(&mut self) -> Result<bool> {
        println!("What the exporter costs: {} nodes, {} jobs\n", self.nodes, self.jobs);
        let (queue, nodes) = cluster_json::make(&self.cache, self.nodes, self.jobs)?;
        let bytes = std::fs::metadata(&queue)?.len() + std::fs::metadata(&nodes)?.len();
        println!("  JSON, of the shape of a real recording {:8.1} MB", bytes as f64 / 1e6);
        let config = self.config(&queue, &nodes)?;
        let snapshot = self.snapshot(&queue, &nodes, &config)?;
        self.scrapes(&config, snapshot)?;
        println!();
        let over = self.report.is_over();
        println!("{}", if over { "Over a limit." } else { "Every limit is kept." });
        Ok(!over)
    }

    /// A Slurm that prints the files.
    fn config(&self, queue: &Path, nodes: &Path) -> Result<String> {
        let fixtures = std::env::current_dir()?.join("tests/fixtures/snapshot-slurm-22.05");
        let script = |name: &str, body: String| -> Result<String> {
            let path = self.cache.join(name);
            std::fs::write(&path, format!("#!/bin/sh\n{body}\n"))?;
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755))?;
            Ok(path.display().to_string())
        };
        let fixture = |name: &str| format!("cat {}", fixtures.join(name).display());
        let squeue = script("squeue", format!("exec cat {}", queue.display()))?;
        let sinfo = script("sinfo", format!("exec cat {}", nodes.display()))?;
        let sshare = script("sshare", fixture("sshare.txt"))?;
        let sdiag = script("sdiag", fixture("sdiag.txt"))?;
        let scontrol = script(
            "scontrol",
            format!(
                "case \"$*\" in\n*--json*) echo \"unrecognized option\" >&2; exit 1;;\n\
                 *config) echo 'ClusterName = large';;\n*partitions) {};;\n*reservations) {};;\n\
                 *licenses) {};;\nesac",
                fixture("scontrol-show-partitions.txt"),
                fixture("scontrol-show-reservations.txt"),
                fixture("scontrol-show-licenses.txt"),
            ),
        )?;
        let sacctmgr = script("sacctmgr", "exit 0".to_owned())?;
        let config = self.cache.join("steward.toml");
        std::fs::write(
            &config,
            format!(
                "[slurm]\nsqueue = [{squeue:?}]\nsinfo = [{sinfo:?}]\nscontrol = [{scontrol:?}]\n\
                 sshare = [{sshare:?}]\nsdiag = [{sdiag:?}]\nsacctmgr = [{sacctmgr:?}]\n\
                 [exporter]\ninterval = \"1s\"\nshare = 1.0\ntimeout = \"5m\"\n"
            ),
        )?;
        Ok(config.display().to_string())
    }

    /// One snapshot, from JSON to the page, against the bare reading of the JSON.
    fn snapshot(&mut self, queue: &Path, nodes: &Path, config: &str) -> Result<Cost> {
        let read = built("examples/read_snapshot")?;
        let steward = built("steward")?;
        let bare_command = [read.as_str(), text(queue)?, text(nodes)?];
        let once = [steward.as_str(), "--config", config, "exporter", "--once"];
        let output = self.cache.join("metrics");
        measure::cost(&bare_command, &self.cache.join("read"))?;
        let (mut bare, mut whole) = (Vec::new(), Vec::new());
        for _ in 0..self.rounds {
            bare.push(measure::cost(&bare_command, &self.cache.join("read"))?);
            whole.push(measure::cost(&once, &output)?);
        }
        let page = std::fs::read_to_string(&output)?;
        let expected = "steward_cluster_nodes{cluster=\"large\",state=\"down\"}";
        ensure!(page.contains(expected), "the page has no {expected}");
        let lines = page.lines().filter(|line| !line.starts_with('#')).count();
        println!("  page: {lines} series                       {:8.1} MB", page.len() as f64 / 1e6);
        let median = |all: &[Cost]| Spread::of(all.iter().map(|one| one.cpu.as_secs_f64())).median;
        println!("  read the JSON into the snapshot's structs {:6.2} s CPU", median(&bare));
        let ratio = Spread::of(
            whole.iter().zip(&bare).map(|(one, other)| one.cpu.div_duration_f64(other.cpu)),
        );
        println!(
            "  read, classify, write the page          {:8.2} s CPU   {:5.2} times ({:.2} to {:.2})   limit {RATIO}   {}",
            median(&whole),
            ratio.median,
            ratio.low,
            ratio.high,
            self.report.hold(ratio.median, RATIO)
        );
        let memory = whole.iter().map(|one| one.memory).fold(0.0, f64::max);
        println!(
            "  memory of one snapshot                  {memory:8.1} MiB     limit {MEMORY:.0} MiB   {}",
            self.report.hold(memory, MEMORY)
        );
        whole.pop().context("no round")
    }

    /// A running exporter: what it has in memory while one snapshot takes the place of another, and
    /// what a scrape costs in between.
    fn scrapes(&mut self, config: &str, snapshot: Cost) -> Result<()> {
        let busy = self.serve(config)?;
        let until = Instant::now() + snapshot.wall * 8 + Duration::from_secs(10);
        while Instant::now() < until {
            std::thread::sleep(Duration::from_millis(500));
        }
        let memory = status(busy.0.0.id(), "VmHWM:")? / 1024.0;
        println!(
            "  memory over several snapshots           {memory:8.1} MiB     limit {MEMORY:.0} MiB   {}",
            self.report.hold(memory, MEMORY)
        );
        println!(
            "  resident between snapshots              {:8.1} MiB",
            child::resident(&busy.0.0.id().to_string()) / 1024.0
        );
        busy.0.signal(Signal::SIGTERM);
        drop(busy);
        let text =
            std::fs::read_to_string(config)?.replace("interval = \"1s\"", "interval = \"1h\"");
        std::fs::write(config, text)?;
        let (quiet, address) = self.serve(config)?;
        let size = wait_for_page(&address, "slurm_cpus_total")?;
        let before = cpu(quiet.0.id())?;
        for _ in 0..SCRAPES {
            ensure!(get(&address)?.len() >= size, "a page that is shorter");
        }
        let each = (cpu(quiet.0.id())? - before) / f64::from(SCRAPES);
        let part = each / snapshot.cpu.as_secs_f64();
        println!(
            "  a scrape between snapshots              {:8.2} ms CPU   {:.3} of a snapshot's   limit {SCRAPE}   {}   ({:.1} MB sent)",
            ms(Duration::from_secs_f64(each)),
            part,
            mark(part, SCRAPE),
            size as f64 / 1e6
        );
        Ok(())
    }

    fn serve(&self, config: &str) -> Result<(Running, String)> {
        let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let address = format!("127.0.0.1:{port}");
        let mut command = child::command(built("steward")?);
        command.args(["--config", config, "--log", "error", "exporter", "--listen", &address]);
        Ok((Running(command.spawn()?), address))
    }
}

fn text(path: &Path) -> Result<&str> {
    path.to_str().context("a path that is text")
}

/// The body of `/metrics`.
fn get(address: &str) -> Result<Vec<u8>> {
    let mut stream = TcpStream::connect(address)?;
    write!(stream, "GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    Ok(answer)
}

/// Waits until the page holds a name; gives its size.
fn wait_for_page(address: &str, name: &str) -> Result<usize> {
    for _ in 0..600 {
        if let Ok(page) = get(address)
            && page.windows(name.len()).any(|part| part == name.as_bytes())
        {
            return Ok(page.len());
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    bail!("{name} did not come");
}

fn status(pid: u32, key: &str) -> Result<f64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = text.lines().find_map(|line| line.strip_prefix(key)).context("status")?;
    Ok(line.split_whitespace().next().context("a number")?.parse()?)
}

/// CPU time of the threads that a process has now, in seconds; to the nanosecond, as the scheduler
/// counts it.
fn cpu(pid: u32) -> Result<f64> {
    let mut sum = 0.0;
    for task in std::fs::read_dir(format!("/proc/{pid}/task"))? {
        let text = std::fs::read_to_string(task?.path().join("schedstat"))?;
        sum += text.split(' ').next().context("schedstat")?.parse::<f64>()?;
    }
    Ok(sum / 1e9)
}
