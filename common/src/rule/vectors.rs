//! Test vectors, by their number in the list of vectors: of Job Defense Shield those that are about
//! reading and cleaning what Slurm says (`v`), of other watchers those that are about several rules
//! (`n`). Those of single rules stand with the rule.

use std::time::Duration;

use crate::limit::Limit;
use crate::slurm::duration::{self, TimeLimit};
use crate::slurm::state::JobState;
use crate::slurm::tres::Tres;
use crate::unit::Bytes;

use super::low_cpu::LowCpu;
use super::low_memory::LowMemory;
use super::measure;
use super::sample::{World, job, near};
use super::serial_allocating_multiple::SerialAllocatingMultiple;
use super::{Missing, Portfolio, Scope, Share, Verdict};

#[test]
fn v1_times_as_slurm_writes_them() {
    for (seconds, text) in
        [(100, "00:01:40"), (1000, "00:16:40"), (10_000, "02:46:40"), (100_000, "1-03:46:40")]
    {
        assert_eq!(duration::format(Duration::from_secs(seconds)), text);
    }
}

/// Job Defense Shield reads garbage as no GPU; a job whose GPUs are unknown is not one without.
#[test]
fn v2_gpus_of_an_allocation() {
    for (text, gpus) in [
        ("", None),
        ("billing=8,cpu=8,mem=4G,node=1", None),
        ("cpu=8,gres/gpu=0", Some(0)),
        ("cpu=8,gres/gpu=2", Some(2)),
        ("cpu=8,gres/gpu=32", Some(32)),
        ("cpu=8,gres/gpu=320", Some(320)),
        // Counted 0 there.
        ("cpu=8,gres/gpu:1g.10gb=1", Some(1)),
    ] {
        let found = text.parse::<Tres>().unwrap().gpus();
        assert_eq!(found.unwrap_or(0), gpus.unwrap_or(0), "{text}");
    }
    for text in ["UNKNOWN", "gres/gpu=x"] {
        assert!(text.parse::<Tres>().is_err(), "{text}");
    }
}

#[test]
fn v7_whoever_cancelled_it_it_is_cancelled() {
    let state = JobState::from("CANCELLED by 352864");
    assert_eq!((state.name(), JobState::from("RUNNING").name()), ("CANCELLED", "RUNNING"));
}

/// Job Defense Shield drops rows whose limit it cannot read, and has −1 for those that wait.
#[test]
fn v10_time_limits_as_text() {
    let minutes = |minutes: u64| TimeLimit::Own(Limit::At(Duration::from_secs(60 * minutes)));
    for (text, limit) in [
        ("100", Some(minutes(100))),
        ("200", Some(minutes(200))),
        ("Partition_Limit", Some(TimeLimit::OfPartition)),
        ("UNLIMITED", Some(TimeLimit::Own(Limit::Unlimited))),
        ("", None),
    ] {
        assert_eq!(duration::limit(text), Ok(limit), "{text:?}");
    }
    assert!(duration::limit("-1").is_err());
}

/// Of ten rows two were requeued before they began. Those two and what waits held nothing; the
/// limits of the others stay what they are instead of the seconds that the jobs ran.
#[test]
fn v11_rows_that_held_nothing_are_no_subjects_and_limits_stay() {
    let unlimited = |draft: super::sample::Draft| {
        draft.with(|job| job.limit = Some(TimeLimit::Own(Limit::Unlimited)))
    };
    let world = World::new([
        job("a").limit_minutes(100),
        unlimited(job("a")),
        unlimited(job("a").running()),
        unlimited(job("a").state(JobState::Pending)),
        job("a").with(|job| job.limit = Some(TimeLimit::OfPartition)),
    ]);
    let portfolio = Portfolio::new(&world.facts, &Scope { running: true, ..Scope::default() });
    let limit = |job: &&super::Job| world.facts.time_limit_of(job);
    let limits: Vec<_> = portfolio.jobs().iter().map(limit).collect();
    let [minutes, days] = [6000, 48 * 3600].map(|secs| Some(Limit::At(Duration::from_secs(secs))));
    let unlimited = Some(Limit::Unlimited);
    assert_eq!(limits, [minutes, unlimited, unlimited, days]);
}

#[test]
fn v13_the_figures_of_a_summary() {
    let draft = job("a").held("n1", 8, 0).with(|job| {
        (job.seconds, job.cpu_seconds) = (88_865, Some(699_741.6));
        let [used, held] = [18_244_395_008, 34_359_738_368].map(|bytes| Bytes::new(bytes).gib());
        (job.gib_used, job.gib) = (Some(used), held);
    });
    let world = World::new([draft]);
    let job = &world.facts.jobs()[0];
    let cpu = measure::cpu(job, Share::ALL).unwrap().share().unwrap();
    assert!((cpu - 699_741.6 / (8.0 * 88_865.0)).abs() < 1e-12);
    let (used, held) = measure::memory(job, Share::ALL).unwrap();
    assert_eq!((used.get(), held.get()), (18_244_395_008, 34_359_738_368));
}

/// No summary, and the summaries `Short` and `None`: nothing is known.
#[test]
fn v12_without_a_summary_every_figure_is_missing() {
    let world = World::new([job("a").held("n1", 8, 1)]);
    let (job, all) = (&world.facts.jobs()[0], Share::ALL);
    assert_eq!(measure::cpu(job, all), Err(Missing::Unmeasured));
    assert_eq!(measure::memory(job, all), Err(Missing::Unmeasured));
    assert_eq!(measure::memory_per_node(job, all), Err(Missing::Unmeasured));
    assert_eq!(measure::gpu(job, all), Err(Missing::Unmeasured));
    assert!(measure::nodes(job, all).is_err() && measure::work(job, all).is_err());
}

/// XDMoD has one word for each job: unknown, good, bad if it used less than 0.1 of its CPUs and less
/// than 0.5 of its memory. Here two rules say which of them is little, and which nobody knows: that
/// the CPUs idled stays true where memory was not measured, which is "good" there.
#[test]
fn n11_little_cpu_little_memory_and_what_nobody_measured() {
    let cpu = LowCpu { efficiency: Share::per_cent(10), ..LowCpu::default() };
    let memory = LowMemory { efficiency: Share::per_cent(50), ..LowMemory::default() };
    let word = |verdict: Verdict| match verdict {
        Verdict::Finding(_) => "little",
        Verdict::Fine => "enough",
        Verdict::NoData(Missing::Unmeasured) => "unknown",
        other => panic!("{other:?}"),
    };
    for (used, peak, words) in [
        (Some(0.05), Some(0.4), ["little", "little"]),
        (Some(0.05), Some(0.6), ["little", "enough"]),
        (None, None, ["unknown", "unknown"]),
        (Some(0.05), None, ["little", "unknown"]),
    ] {
        let world = World::new([job("a").with(|job| {
            job.cpu_seconds = used.map(|used| used * f64::from(job.seconds));
            job.gib_used = peak.map(|peak| peak * job.gib);
        })]);
        let found = [word(world.on(&cpu, "a")), word(world.on(&memory, "a"))];
        assert_eq!(found, words, "{used:?} of the CPU, {peak:?} of the memory");
    }
}

/// A program that uses less than a core is serial there. Here one that keeps no more than
/// `lower_ratio` of a core busy does not count as one that works, unless the site says so.
#[test]
fn n12_less_than_one_of_eight_cores_is_serial_and_less_than_half() {
    let world = World::new([job("a").hours(2.0).held("n1", 8, 0).cpu_used(0.7 / 8.0)]);
    let serial = SerialAllocatingMultiple {
        lower_ratio: 0.0,
        cpu_hours: 0.0,
        ..SerialAllocatingMultiple::default()
    };
    let finding = world.finding(&serial, "a");
    near(&finding, "cpu_hours_wasted", 2.0 * (8.0 - 1.0));
    let busy = finding.hits[0].figures.number("cores_busy").unwrap();
    assert!((busy - 0.7).abs() < 1e-9, "{busy}");
    let half = LowCpu { efficiency: Share::per_cent(50), ..LowCpu::default() };
    let finding = world.finding(&half, "a");
    near(&finding, "cpu_efficiency", 0.7 / 8.0);
    near(&finding, "cpu_hours_unused", 2.0 * (8.0 - 0.7));
    let shipped =
        SerialAllocatingMultiple { cpu_hours: 0.0, ..SerialAllocatingMultiple::default() };
    assert_eq!(world.on(&shipped, "a"), Verdict::Fine);
}
