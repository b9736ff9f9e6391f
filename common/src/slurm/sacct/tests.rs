//! Rows become runs. The cases `a…` are the vectors of the survey of slurm-usage, with our values
//! where that program is wrong; the rows are in the form that sacct of Slurm 22.05 prints.

use super::row::ends;
use super::{Draft, Field, Layout, Oddity, Row};
use crate::job::{Run, Source};

/// Shows `look` the run of these rows, each as the fields that are not empty.
fn look<T>(rows: &[&[(Field, &str)]], look: impl Fn(&Run<'_>, &[Oddity]) -> T) -> T {
    let layout = Layout::new(|_| true);
    let texts: Vec<String> = rows
        .iter()
        .enumerate()
        .map(|(place, fields)| {
            let id = if place == 0 { "100".to_owned() } else { format!("100.{}", place - 1) };
            let value = |field: &Field| {
                let given = fields.iter().find(|(name, _)| name == field).map(|(_, text)| *text);
                let usual = match field {
                    Field::JobIdRaw | Field::JobId => id.as_str(),
                    Field::Submit => "1000",
                    Field::State => "COMPLETED",
                    Field::End if place == 0 => "5000",
                    _ => "",
                };
                given.unwrap_or(usual).to_owned()
            };
            let mut values: Vec<String> = layout.fields().iter().map(value).collect();
            values.push(values[0].clone());
            values.join("\x1f")
        })
        .collect();
    let places: Vec<Vec<u32>> = texts.iter().map(|text| ends(text)).collect();
    let mut rows =
        texts.iter().zip(&places).map(|(text, ends)| Row::new(&layout, text, 0, ends).unwrap());
    let mut draft = Draft::new(&rows.next().unwrap()).unwrap();
    for row in rows {
        draft.step(&row);
    }
    let (run, oddities) = draft.finish();
    look(&run, &oddities)
}

fn own<T>(fields: &[(Field, &str)], with: impl Fn(&Run<'_>) -> T) -> T {
    look(&[fields], |run, oddities| {
        assert!(oddities.is_empty(), "{oddities:?}");
        with(run)
    })
}

fn near(value: Option<f64>, expected: f64) -> bool {
    value.is_some_and(|value| (value - expected).abs() < 1e-9 * expected.abs().max(1.0))
}

/// 8 CPUs for an hour, 16 GiB, 4 hours of CPU time, 2 GPUs.
const A20: &[(Field, &str)] = &[
    (Field::AllocCpus, "8"),
    (Field::AllocNodes, "1"),
    (Field::Elapsed, "3600"),
    (Field::ReqMem, "16G"),
    (Field::TotalCpu, "04:00:00"),
    (Field::AllocTres, "billing=8,cpu=8,gres/gpu=2,mem=16G,node=1"),
];

#[test]
fn a1_to_a5_memory_asked_for() {
    for (text, mib) in [
        ("4G", Some(4096.0)),
        ("4000M", Some(4000.0)),
        ("512K", Some(0.5)),
        ("1.5T", Some(1_572_864.0)),
        ("1048576K", Some(1024.0)),
        ("1024", Some(1.0)),
        ("123456", Some(120.5625)),
        ("", None),
        ("0", None),
        ("0n", None),
    ] {
        let found = own(&[(Field::ReqMem, text)], |run| run.req_mem_mb());
        assert_eq!(found, mib, "{text:?}");
    }
    // Per node, for each of two; per CPU, for each of eight.
    let two = [(Field::ReqMem, "4Gn"), (Field::AllocNodes, "2"), (Field::AllocCpus, "8")];
    assert_eq!(own(&two, |run| run.req_mem_mb()), Some(8192.0));
    let eight = [(Field::ReqMem, "2Gc"), (Field::AllocNodes, "1"), (Field::AllocCpus, "8")];
    assert_eq!(own(&eight, |run| run.req_mem_mb()), Some(16_384.0));
    // What cannot be read is absent and said, and the run stands.
    for text in ["16?", "N/A"] {
        look(&[&[(Field::ReqMem, text)]], |run, odd| {
            assert_eq!(run.req_mem_mb(), None);
            assert_eq!(odd.len(), 1, "{text:?}");
        });
    }
}

#[test]
fn all_memory_of_the_nodes_is_what_was_given() {
    let fields = [(Field::ReqMem, "0"), (Field::AllocTres, "cpu=4,mem=187G,node=1")];
    assert_eq!(own(&fields, |run| run.req_mem_mb()), Some(187.0 * 1024.0));
}

#[test]
fn more_memory_than_was_asked_for_is_held() {
    // With --exclusive Slurm gives DefMemPerCPU of every CPU of the node.
    let fields = [
        (Field::ReqMem, "500M"),
        (Field::AllocTres, "billing=8,cpu=8,mem=4000M,node=1"),
        (Field::Elapsed, "3600"),
        (Field::MaxRss, "1000M"),
    ];
    look(&[&fields], |run, odd| {
        assert_eq!((run.req_mem_mb(), run.alloc_mem_mb()), (Some(500.0), Some(4000.0)));
        assert_eq!(run.memory_efficiency(), Some(25.0));
        assert_eq!(run.memory_gb_hours_reserved(), Some(4000.0 / 1024.0));
        assert_eq!((run.billing, odd.len()), (Some(8), 0));
    });
    // What has not started holds nothing yet: it is known by what it asks for.
    let fields = [(Field::ReqMem, "500M"), (Field::AllocTres, "")];
    assert_eq!(own(&fields, |run| run.alloc_mem_mb()), Some(500.0));
}

#[test]
fn a6_to_a9_cpu_time() {
    for (text, seconds) in [
        ("1-02:03:04", Some(93_784.0)),
        ("02:03.456", Some(123.456)),
        ("12:34:56.789", Some(45_296.789)),
        ("00:00.010", Some(0.010)),
        ("", None),
    ] {
        let found = own(&[(Field::TotalCpu, text)], |run| run.cpu_seconds);
        assert_eq!(found, seconds, "{text:?}");
    }
    for text in ["5", "UNLIMITED", "INVALID"] {
        look(&[&[(Field::TotalCpu, text)]], |run, odd| {
            assert_eq!((run.cpu_seconds, odd.len()), (None, 1), "{text:?}");
        });
    }
}

#[test]
fn a10_and_a11_gpus_typed_or_not() {
    for (text, count, types) in [
        ("cpu=4,mem=8G,gres/gpu=2", Some(2), ""),
        ("cpu=4,gres/gpu:a100=2", Some(2), "a100=2"),
        ("gres/gpu:v100=1,gres/gpu:a100=2,gres/gpu=3", Some(3), "a100=2,v100=1"),
        ("cpu=4,mem=8G", Some(0), ""),
        ("", None, ""),
    ] {
        own(&[(Field::AllocTres, text)], |run| {
            assert_eq!((run.gpus, run.gpu_types.as_ref()), (count, types), "{text:?}");
        });
    }
}

#[test]
fn a19_none_assigned_is_no_node_and_no_cpu() {
    let fields = [
        (Field::NodeList, "None assigned"),
        (Field::AllocNodes, "0"),
        (Field::AllocCpus, "16"),
        (Field::Start, "None"),
        (Field::Elapsed, "0"),
        (Field::State, "CANCELLED by 1000"),
    ];
    own(&fields, |run| {
        assert_eq!((run.nodes.as_ref(), run.cpus, run.start), ("", Some(0), None));
        assert_eq!(run.cpu_hours_reserved(), Some(0.0));
        assert_eq!(run.wait(), None);
    });
}

#[test]
fn a20_without_a_measurement_memory_is_unknown_not_wasted() {
    own(A20, |run| {
        assert!(near(run.cpu_efficiency(), 50.0) && near(run.cpu_hours_wasted(), 4.0));
        assert_eq!((run.memory_efficiency(), run.memory_gb_hours_wasted()), (None, None));
        assert!(near(run.cpu_hours_reserved(), 8.0));
        assert!(near(run.memory_gb_hours_reserved(), 16.0));
        assert!(near(run.gpu_hours_reserved(), 2.0));
        assert_eq!(run.cpu_source, Some(Source::Job));
    });
}

#[test]
fn a21_the_only_step_says_what_was_used() {
    let batch = [
        (Field::JobIdRaw, "100.batch"),
        (Field::TotalCpu, "02:00:00"),
        (Field::MaxRss, "8388608K"),
        (Field::NTasks, "1"),
    ];
    look(&[A20, &batch], |run, odd| {
        assert!(odd.is_empty());
        assert!(near(run.cpu_efficiency(), 25.0) && near(run.memory_efficiency(), 50.0));
        assert!(near(run.cpu_hours_wasted(), 6.0) && near(run.memory_gb_hours_wasted(), 8.0));
        assert_eq!((run.cpu_source, run.memory_source), (Some(Source::Steps), Some(Source::Steps)));
    });
}

#[test]
fn a23_no_time_has_no_efficiency() {
    let fields: Vec<_> =
        A20.iter().filter(|(field, _)| *field != Field::Elapsed).copied().collect();
    let fields = [fields.as_slice(), &[(Field::Elapsed, "0"), (Field::MaxRss, "1G")]].concat();
    own(&fields, |run| {
        assert_eq!((run.cpu_efficiency(), run.memory_efficiency()), (None, None));
        assert_eq!((run.cpu_hours_reserved(), run.cpu_hours_wasted()), (Some(0.0), Some(0.0)));
    });
}

#[test]
fn a24_a_batch_step_that_only_waits_does_not_hide_the_work() {
    // A script that starts one srun: all work is in the numbered step.
    let main: &[(Field, &str)] =
        &[(Field::AllocCpus, "4"), (Field::Elapsed, "1000"), (Field::TotalCpu, "01:06:16")];
    let batch = [(Field::TotalCpu, "00:05.200"), (Field::MaxRss, "4M"), (Field::NTasks, "1")];
    let srun = [
        (Field::TotalCpu, "01:06:10.800"),
        (Field::MaxRss, "1G"),
        (Field::NTasks, "4"),
        (Field::TresUsageInTot, "cpu=01:06:10,mem=4294967296,fs/disk=100"),
        (Field::TresUsageOutTot, "fs/disk=7"),
    ];
    look(&[main, &batch, &srun], |run, _| {
        assert!(near(run.cpu_efficiency(), 99.4), "{:?}", run.cpu_efficiency());
        // The sum of the tasks, not the greediest one.
        assert_eq!(run.max_rss_mb(), Some(4096.0));
        assert_eq!((run.disk_read, run.disk_written, run.steps), (Some(100), Some(7), Some(2)));
    });
}

#[test]
fn the_highest_of_one_task_is_not_passed_off_as_the_jobs() {
    let srun = [(Field::MaxRss, "1G"), (Field::NTasks, "4")];
    look(&[&[], &srun], |run, _| assert_eq!(run.max_rss_mb(), None));
}

#[test]
fn a25_one_table_says_which_runs_are_over() {
    for (state, name, over) in [
        ("CANCELLED by 1000", "CANCELLED", true),
        ("PREEMPTED", "PREEMPTED", true),
        ("COMPLETING", "COMPLETING", false),
        ("NODE_FAIL", "NODE_FAIL", true),
        ("REQUEUED", "REQUEUED", true),
        ("RUNNING", "RUNNING", false),
        ("SUSPENDED", "SUSPENDED", false),
        ("OUT_OF_MEMORY", "OUT_OF_MEMORY", true),
    ] {
        own(&[(Field::State, state)], |run| {
            assert_eq!((run.state.as_ref(), run.ended), (name, over), "{state}");
        });
    }
    own(&[(Field::State, "CANCELLED by 1000")], |run| assert_eq!(run.cancelled_by, Some(1000)));
    // Without an end nothing is over.
    own(&[(Field::State, "REQUEUED"), (Field::End, "Unknown")], |run| assert!(!run.ended));
}

#[test]
fn a27_a_name_is_kept_whole() {
    let name = "x".repeat(80);
    assert_eq!(own(&[(Field::JobName, &name)], |run| run.name.len()), 80);
}

#[test]
fn a28_a_user_without_a_name_is_a_number() {
    assert_eq!(own(&[(Field::Uid, "1001")], |run| run.user.to_string()), "uid_1001");
    assert_eq!(own(&[], |run| run.user.to_string()), "MISSING_USER");
}

#[test]
fn arrays_and_heterogeneous_jobs_know_their_family() {
    for (id, family) in [
        ("100_7", (Some(100), Some(7), None, None)),
        ("100_[1-500%20]", (Some(100), None, None, None)),
        ("100+1", (None, None, Some(100), Some(1))),
        ("100", (None, None, None, None)),
    ] {
        own(&[(Field::JobId, id)], |run| {
            let found = (run.array_job, run.array_task, run.het_job, run.het_offset);
            assert_eq!(found, family, "{id}");
        });
    }
}

#[test]
fn use_that_was_not_recorded_is_absent_not_zero() {
    // A running job, and one whose node was lost: Slurm prints zeros.
    let step = [
        (Field::TotalCpu, "00:00:00"),
        (Field::MaxRss, "0"),
        (Field::NTasks, "1"),
        (Field::TresUsageInTot, "cpu=00:00:00,mem=0"),
    ];
    look(&[A20, &step], |run, _| {
        assert_eq!((run.cpu_seconds, run.peak_memory), (None, None));
        assert_eq!((run.cpu_source, run.memory_source), (None, None));
    });
}

#[test]
fn the_process_that_waits_in_the_extern_step_is_not_the_jobs_memory() {
    let batch = [(Field::MaxRss, "0"), (Field::NTasks, "1"), (Field::TresUsageInTot, "mem=0")];
    let waiting = [
        (Field::JobIdRaw, "100.extern"),
        (Field::NTasks, "1"),
        (Field::TresUsageInTot, "mem=110592"),
    ];
    look(&[A20, &batch, &waiting], |run, _| assert_eq!(run.peak_memory, None));
    look(&[A20, &waiting], |run, _| assert!(run.peak_memory.is_some()));
}

#[test]
fn a_run_before_a_change_of_size_is_over() {
    own(&[(Field::State, "RESIZING")], |run| assert!(run.ended));
    own(&[(Field::State, "RESIZING"), (Field::End, "Unknown")], |run| assert!(!run.ended));
}

#[test]
fn more_than_was_held_is_seen() {
    let fields = [
        (Field::AllocCpus, "1"),
        (Field::Elapsed, "100"),
        (Field::TotalCpu, "00:03:20"),
        (Field::ReqMem, "1G"),
        (Field::MaxRss, "2G"),
    ];
    own(&fields, |run| {
        assert!(near(run.cpu_efficiency(), 200.0) && near(run.memory_efficiency(), 200.0));
        assert_eq!((run.cpu_hours_wasted(), run.memory_gb_hours_wasted()), (Some(0.0), Some(0.0)));
    });
}

#[test]
fn a_row_that_does_not_say_which_run_it_is_is_refused() {
    let layout = Layout::new(|field| matches!(field, Field::JobIdRaw | Field::Submit));
    for text in ["x\x1f1000\x1fx", "100\x1fUnknown\x1f100", "100\x1fyesterday\x1f100"] {
        let ends = ends(text);
        let row = Row::new(&layout, text, 0, &ends).unwrap();
        assert!(Draft::new(&row).is_err(), "{text:?}");
    }
}

#[test]
fn time_limits_and_exit_codes() {
    let fields = [(Field::Timelimit, "30"), (Field::Elapsed, "900"), (Field::ExitCode, "1:9")];
    own(&fields, |run| {
        assert!(near(run.time_limit_use(), 50.0));
        assert_eq!((run.exit_code, run.exit_signal), (Some(1), Some(9)));
    });
    for text in ["UNLIMITED", "Partition_Limit", ""] {
        let fields = [(Field::Timelimit, text), (Field::Elapsed, "900")];
        assert_eq!(own(&fields, |run| run.time_limit_use()), None, "{text:?}");
    }
}

#[test]
fn a_run_is_the_same_in_whatever_words_its_rows_tell_it() {
    // What nearly all rows say is read in quick ways of its own.
    let usual: &[(Field, &str)] = &[
        (Field::AllocTres, "billing=4,cpu=4,gres/gpu:a100=2,gres/gpu=2,mem=16384M,node=1"),
        (Field::ReqMem, "8192M"),
        (Field::Timelimit, "90"),
        (Field::Elapsed, "714"),
        (Field::User, "user107"),
        (Field::Uid, "20107"),
        (Field::TotalCpu, "02:17.926"),
        (Field::Energy, "0"),
    ];
    let step: &[(Field, &str)] = &[
        (Field::TotalCpu, "1-05:23:59"),
        (Field::TresUsageInTot, "cpu=1-05:23:59,energy=0,fs/disk=12,mem=4096,pages=0,vmem=1"),
        (Field::TresUsageOutTot, "energy=0,fs/disk=7"),
    ];
    let other: &[(Field, &str)] = &[
        (Field::AllocTres, "node=1,mem=16G,gres/gpu=2,gres/gpu:a100=2,cpu=4,billing=4"),
        (Field::ReqMem, "8.00G"),
        (Field::Timelimit, "01:30:00"),
        (Field::Elapsed, "0000000714"),
        (Field::User, "user107"),
        (Field::Uid, "0000020107"),
        (Field::TotalCpu, "00:02:17.926"),
        (Field::Energy, "18446744073709551614"),
    ];
    let other_step: &[(Field, &str)] = &[
        (Field::TotalCpu, "29:23:59"),
        (Field::TresUsageInTot, "mem=4K,fs/disk=12"),
        (Field::TresUsageOutTot, "fs/disk=7,energy=0"),
    ];
    let told = |rows: &[&[(Field, &str)]]| {
        look(rows, |run, oddities| {
            assert!(oddities.is_empty(), "{oddities:?}");
            assert_eq!(
                (run.billing, run.gpus, run.gpu_types.as_ref()),
                (Some(4), Some(2), "a100=2")
            );
            format!("{run:?}")
        })
    };
    assert_eq!(told(&[usual]), told(&[other]));
    assert_eq!(told(&[usual, step]), told(&[other, other_step]));
}
