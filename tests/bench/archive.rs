//! What the archive costs, in numbers, each with its limit beside it: run it as
//! `tests/bench/archive`.

mod baseline;
mod duckdb;
mod measure;
mod report;
mod steward;
mod text;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use duckdb::DuckDb;
use measure::Cost;
use report::{Report, Spread, mark, ms};
use steward::{Archive, Layers};
use steward_tests::sacct_text::layout;
use text::Text;

/// Name of the part that is the least that can be done with the text.
const BASELINE: &str = "baseline";
/// The size for which the limits are meant.
const MILLION: u64 = 1_000_000;

const COLLECT: f64 = 6.0;
const COLLECT_JOBS: f64 = 4.5;
const MEMORY: f64 = 300.0;
const ANALYZE: f64 = 500.0;
const GROUP_BY: f64 = 2.0;
/// Megabytes for a million jobs.
const SIZE: f64 = 280.0;
const TWICE_TIME: f64 = 2.1;
const TWICE_MEMORY: f64 = 1.05;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.split_first() {
        Some((part, rest)) if part == measure::MEASURED => match measure::measured(rest) {
            Ok(0) => Ok(true),
            Ok(_) => return ExitCode::FAILURE,
            Err(error) => Err(error),
        },
        Some((part, files)) if part == BASELINE => print_baseline(files),
        _ => Bench::new(&arguments).and_then(|mut bench| bench.run()),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("tests/bench/archive: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Sums the files, and says what was seen.
fn print_baseline(files: &[String]) -> Result<bool> {
    let totals = baseline::sum(files, &layout())?;
    let (mut jobs, mut cpu, mut memory, mut gpu, mut wait) = (0, (0.0, 0.0), (0.0, 0.0), 0.0, 0);
    for sums in totals.users.values() {
        jobs += sums.jobs;
        cpu = (cpu.0 + sums.cpu.0, cpu.1 + sums.cpu.1);
        memory = (memory.0 + sums.memory.0, memory.1 + sums.memory.1);
        gpu += sums.gpu;
        wait += sums.wait;
    }
    println!("{:.2} GB, {} rows, {} odd lines", totals.bytes as f64 / 1e9, totals.rows, totals.odd);
    println!("{jobs} jobs of {} users, {:.1} h waited", totals.users.len(), wait as f64 / 3600.0);
    println!("{:.1} of {:.1} CPU h, {gpu:.1} GPU h", cpu.1, cpu.0);
    println!("{:.1} of {:.1} GiB h", memory.1 / 1_048_576.0, memory.0 / 1_048_576.0);
    Ok(true)
}

struct Bench {
    jobs: u64,
    days: u64,
    rounds: usize,
    cache: PathBuf,
    report: Report,
    /// Whether all could be measured.
    whole: bool,
}

impl Bench {
    fn new(arguments: &[String]) -> Result<Bench> {
        let cache = std::env::var_os("STEWARD_BENCH_CACHE").context("use tests/bench/archive")?;
        let cache = PathBuf::from(cache);
        let report = Report::default();
        let mut bench = Bench { jobs: MILLION, days: 30, rounds: 3, cache, report, whole: true };
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            let mut number = || -> Result<u64> {
                let value =
                    arguments.next().with_context(|| format!("{argument} needs a number"))?;
                value.parse().with_context(|| format!("{argument} {value}: not a number"))
            };
            match argument.as_str() {
                "--quick" => bench.jobs = 50_000,
                "--jobs" => bench.jobs = number()?,
                "--days" => bench.days = number()?,
                "--rounds" => bench.rounds = usize::try_from(number()?)?,
                _ => bail!("unknown argument {argument}"),
            }
        }
        if bench.jobs < 2 || bench.days == 0 || bench.rounds == 0 {
            bail!("--jobs, --days and --rounds must be more than that");
        }
        std::fs::create_dir_all(&bench.cache)?;
        Ok(bench)
    }

    /// Measures and prints; whether all was measured and within its limits.
    fn run(&mut self) -> Result<bool> {
        println!("What the archive costs: {} jobs over {} days\n", self.jobs, self.days);
        let text = Text::of(self.jobs, self.days, &self.cache)?;
        let half = Text::of(self.jobs / 2, self.days, &self.cache)?;
        println!();
        let (collect, analyze) = (steward::has("collect")?, steward::has("analyze")?);
        self.whole = collect && analyze;
        if let Some(archive) = self.collect(&text, collect)? {
            self.size(&archive)?;
            if analyze {
                self.analyze(&archive, &text)?;
            }
            self.twice(&text, &half)?;
        }
        println!();
        match (self.whole, self.report.is_over()) {
            (false, _) => println!("Not all of it could be measured."),
            (true, true) => println!("Over a limit."),
            (true, false) => println!("Every limit that other work cannot spoil is kept."),
        }
        Ok(self.whole && !self.report.is_over())
    }

    fn archive(&self, name: &str, text: &Text, layers: Layers) -> Result<Archive> {
        Archive::new(&self.cache.join(name), text, self.days, layers)
    }

    /// The bare parse of the text, in a process of its own.
    fn baseline(&self, text: &Text) -> Result<Cost> {
        let own = std::env::current_exe()?.display().to_string();
        let files = text.files()?;
        let files = files.iter().map(|path| path.to_str().context("a path that is text"));
        let files = files.collect::<Result<Vec<_>>>()?;
        let command = [&[own.as_str(), BASELINE][..], &files].concat();
        measure::cost(&command, &self.cache.join("baseline"))
    }

    /// Collection against the bare parse of the same text.
    fn collect(&mut self, text: &Text, there: bool) -> Result<Option<Archive>> {
        let (mut bare, mut both, mut jobs) = (Vec::new(), Vec::new(), Vec::new());
        let mut last = None;
        // The text comes from the disk once, for nobody's account.
        self.baseline(text)?;
        for _ in 0..self.rounds {
            bare.push(self.baseline(text)?);
            if !there {
                continue;
            }
            let archive = self.archive("both", text, Layers::Both)?;
            both.push(archive.collect()?);
            last = Some(archive);
            // Once refused is enough to know.
            if jobs.len() + 1 == both.len() {
                match self.archive("jobs", text, Layers::Jobs)?.collect() {
                    Ok(cost) => jobs.push(cost),
                    Err(error) => println!("  the jobs layer alone is left out: {error:#}"),
                }
            }
        }
        let said = std::fs::read_to_string(self.cache.join("baseline"))?;
        let said: Vec<&str> = said.lines().collect();
        println!("  text                          {}", said.join("; "));
        let spread = Spread::of(bare.iter().map(|cost| cost.cpu.as_secs_f64()));
        println!(
            "  bare parse                    {:8.2} s CPU   ({:.2} to {:.2}), {:.1} MiB",
            spread.median, spread.low, spread.high, bare[0].memory
        );
        let Some(archive) = last else { return Ok(None) };
        let (calls, bytes) = archive.calls();
        println!(
            "  served by sacct               {:8.2} GB      in {calls} calls",
            bytes as f64 / 1e9
        );
        self.ratio("collect, both layers", &both, &bare, COLLECT);
        if jobs.is_empty() {
            self.whole = false;
        } else {
            self.ratio("collect, jobs layer alone", &jobs, &bare, COLLECT_JOBS);
        }
        let memory = both.iter().map(|cost| cost.memory).fold(0.0, f64::max);
        let word = self.report.hold(memory, MEMORY);
        println!(
            "  memory of collect             {memory:8.1} MiB     limit {MEMORY:5.0} MiB   {word}"
        );
        Ok(Some(archive))
    }

    /// CPU time of one by that of the other, round by round.
    fn ratio(&self, what: &str, ours: &[Cost], theirs: &[Cost], limit: f64) {
        let seconds = Spread::of(ours.iter().map(|cost| cost.cpu.as_secs_f64())).median;
        let wall = Spread::of(ours.iter().map(|cost| cost.wall.as_secs_f64())).median;
        let pairs = ours.iter().zip(theirs);
        let ratio = Spread::of(pairs.map(|(one, other)| one.cpu.div_duration_f64(other.cpu)));
        println!(
            "  {what:<29} {seconds:8.2} s CPU   {:6.2} times the bare parse ({:.2} to {:.2})   limit {limit}   {}   [{wall:.1} s by the clock]",
            ratio.median,
            ratio.low,
            ratio.high,
            mark(ratio.median, limit)
        );
    }

    fn size(&mut self, archive: &Archive) -> Result<()> {
        let (bytes, each) = archive.sizes()?;
        let (size, limit) = (bytes as f64 / 1e6, SIZE * self.jobs as f64 / MILLION as f64);
        let each: Vec<String> =
            each.iter().map(|(name, bytes)| format!("{name} {:.1}", *bytes as f64 / 1e6)).collect();
        println!(
            "  size of the archive           {size:8.1} MB      limit {limit:5.0} MB    {}   ({})",
            self.report.hold(size, limit),
            each.join(", ")
        );
        Ok(())
    }

    /// Analysis, and a single group-by against DuckDB's.
    fn analyze(&mut self, archive: &Archive, text: &Text) -> Result<()> {
        let duckdb = DuckDb::install(&self.cache);
        let (mut all, mut users, mut theirs) = (Vec::new(), Vec::new(), Vec::new());
        let mut failed = None;
        for _ in 0..self.rounds * 2 + 1 {
            all.push(archive.analyze()?);
            match (archive.users(), &duckdb) {
                (Ok(cost), Ok(duckdb)) => match duckdb.users(&archive.data()) {
                    Ok(answer) => {
                        users.push(cost.cpu);
                        theirs.push(answer);
                    }
                    Err(error) => failed = Some(format!("{error:#}")),
                },
                (Err(error), _) => failed = Some(format!("{error:#}")),
                (_, Err(error)) => failed = Some(format!("{error:#}")),
            }
        }
        let cpu = Spread::of(all.iter().map(|cost| ms(cost.cpu)));
        println!(
            "  analyze, all tables           {:8.0} ms CPU  limit {ANALYZE:5.0} ms    {}   ({:.0} to {:.0}), {:.1} MiB",
            cpu.median,
            mark(cpu.median, ANALYZE),
            cpu.low,
            cpu.high,
            all[0].memory
        );
        if let Some(why) = failed {
            self.whole = false;
            println!("  a single group-by is left out: {why}");
            return Ok(());
        }
        let ratio = users.iter().zip(&theirs).map(|(our, their)| our.div_duration_f64(their.cpu()));
        let ratio = Spread::of(ratio);
        let median = |times: Vec<Duration>| Spread::of(times.into_iter().map(ms)).median;
        println!(
            "  analyze, users alone          {:8.0} ms CPU   {:6.2} times DuckDB's {:.0} ms   limit {GROUP_BY}   {}",
            median(users),
            ratio.median,
            median(theirs.iter().map(duckdb::Answer::cpu).collect()),
            mark(ratio.median, GROUP_BY)
        );
        println!(
            "  rows for DuckDB               {:8} of {} jobs and their other runs",
            theirs[0].jobs, text.jobs
        );
        Ok(())
    }

    /// Collection of twice the jobs.
    fn twice(&mut self, text: &Text, half: &Text) -> Result<()> {
        let (mut time, mut memory) = (Vec::new(), Vec::new());
        for _ in 0..self.rounds {
            let one = self.archive("half", half, Layers::Both)?.collect()?;
            let two = self.archive("both", text, Layers::Both)?.collect()?;
            time.push(two.cpu.div_duration_f64(one.cpu));
            memory.push(two.memory / one.memory);
        }
        let (time, memory) = (Spread::of(time), Spread::of(memory));
        println!(
            "  twice the jobs: time          {:8.2} times   limit {TWICE_TIME:5.2}   {}   ({:.2} to {:.2})",
            time.median,
            mark(time.median, TWICE_TIME),
            time.low,
            time.high
        );
        println!(
            "  twice the jobs: memory        {:8.2} times   limit {TWICE_MEMORY:5.2}   {}   ({:.2} to {:.2})",
            memory.median,
            self.report.hold(memory.median, TWICE_MEMORY),
            memory.low,
            memory.high
        );
        Ok(())
    }
}
