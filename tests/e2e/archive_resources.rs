//! Memory and GPUs of real jobs in the archive: those of all tasks, nodes and CPUs together.

use steward_tests::accounted::{
    PATIENCE, archived, assert_accounted, command, ended, near, number, runs,
};
use steward_tests::archive::done;
use steward_tests::shared;
use steward_tests::slurm::{run, submit};

/// What each task holds, in MiB.
const HELD: f64 = 60.0;

#[test]
fn memory_of_several_tasks_is_what_they_hold_together() {
    let data = tempfile::tempdir().unwrap();
    let notes = shared::directory();
    let task = format!(
        "import os, re, time\n\
         block = bytearray({HELD:.0} << 20)\n\
         text = open('/proc/self/status').read()\n\
         found = [re.search(key + r':\\s+(\\d+) kB', text)[1] for key in ('RssAnon', 'VmHWM')]\n\
         open('{}/' + os.environ['SLURM_PROCID'], 'w').write(' '.join(found))\n\
         time.sleep(15)\n",
        notes.path().display()
    );
    let script = format!("#!/bin/sh\nexec srun -n3 python3 -c \"$(cat <<'END'\n{task}END\n)\"\n");
    // On one node: of others Slurm 22.05 itself does not always add up what their tasks held.
    let job = submit("stw-alice", &["-N1", "-n3", "--mem=400M"], &script);
    job.wait_ended(PATIENCE);
    let found = archived(data.path(), "memory of the tasks", |all| {
        let found = runs(all, &job.id).pop()?;
        (found["is_complete"] == "true" && number(&found, "steps") == 3.0).then_some(found)
    });
    // What each says of itself: its own pages, and with them those of files.
    let told = [0, 1, 2].map(|task| {
        let text = std::fs::read_to_string(notes.path().join(task.to_string())).unwrap();
        let kib: Vec<f64> = text.split(' ').map(|part| part.parse().unwrap()).collect();
        assert!(kib[0] >= HELD * 1024.0, "{kib:?}");
        kib
    });
    let sum = |of: usize| told.iter().map(|kib| kib[of] / 1024.0).sum::<f64>();
    let peak = number(&found, "max_rss_mb");
    assert!(peak >= 3.0 * HELD && peak >= 0.95 * sum(0), "{peak} MiB, the tasks say {told:?}");
    assert!(peak <= 1.1 * sum(1), "{peak} MiB, the tasks say {told:?}");
    assert_eq!(found["memory_source"], "steps");
    // Of one task Slurm tells, too, and that is not it.
    let one = run("sacct", &["-nP", "--noconvert", "-j", &job.id, "-o", "MaxRSS"]);
    let one = one.lines().filter_map(|line| line.parse::<f64>().ok()).fold(0.0, f64::max);
    let one = one / f64::from(1 << 20);
    assert!(one >= HELD && peak > 2.0 * one, "{peak} MiB, of one task {one}");
    assert!(near(number(&found, "memory_efficiency"), 100.0 * peak / 400.0));
    assert_accounted(&found);
}

#[test]
fn memory_for_each_cpu_or_node_is_asked_for_as_often_as_there_are() {
    let data = tempfile::tempdir().unwrap();
    let notes = shared::directory();
    let note = notes.path().join("cpus");
    let script = format!(
        "#!/bin/sh\necho $SLURM_MEM_PER_CPU $SLURM_CPUS_ON_NODE >{}\nsleep 1\n",
        note.display()
    );
    let job = submit("stw-bob", &["-n2", "-c3", "-N1", "--mem-per-cpu=40M"], &script);
    let nodes = submit("stw-bob", &["-N2", "--mem=50M"], "#!/bin/sh\nsleep 1\n");
    job.wait_ended(PATIENCE);
    let found = ended(data.path(), &job);
    assert_eq!(std::fs::read_to_string(note).unwrap().trim(), "40 6", "as the job saw it");
    assert_eq!((number(&found, "req_mem_mb"), &*found["alloc_cpus"]), (240.0, "6"));
    let hours = number(&found, "elapsed_seconds") / 3600.0;
    assert!(near(number(&found, "memory_gb_hours_reserved"), 240.0 / 1024.0 * hours));
    assert!(near(number(&found, "cpu_hours_reserved"), 6.0 * hours));
    assert_accounted(&found);
    let found = ended(data.path(), &nodes);
    assert_eq!((number(&found, "req_mem_mb"), &*found["alloc_nodes"]), (100.0, "2"));
    assert_accounted(&found);
}

#[test]
fn whoever_gets_a_whole_node_holds_the_memory_of_all_its_cpus() {
    let data = tempfile::tempdir().unwrap();
    let script = "#!/bin/sh\nsleep 2\n";
    let job = submit("stw-bob", &["-p", "gpu", "-N1", "-n1", "--exclusive"], script);
    job.wait_ended(PATIENCE);
    let found = ended(data.path(), &job);
    // The testbed's DefMemPerCPU is 500, and its nodes have eight CPUs.
    assert_eq!((&*found["alloc_cpus"], number(&found, "alloc_mem_mb")), ("8", 4000.0), "{found:?}");
    let hours = number(&found, "elapsed_seconds") / 3600.0;
    assert!(near(number(&found, "memory_gb_hours_reserved"), 4000.0 / 1024.0 * hours));
    let said = done(
        &command(data.path(), &["jobs", "--all-users", "--days", "1", "--limit", "0", "--json"])
            .output()
            .unwrap(),
    );
    let told: serde_json::Value = serde_json::from_str(&said).unwrap();
    let line = told["jobs"].as_array().unwrap().iter().find(|line| line["job"] == job.id).unwrap();
    assert_eq!(line["memory_held_mib"], 4000.0, "{line}");
}

#[test]
fn gpus_of_a_type_count_once_and_under_their_type() {
    let data = tempfile::tempdir().unwrap();
    let script = "#!/bin/sh\nsleep 3\n";
    let of = |options: &[&str]| {
        let options = [&["-p", "gpu", "-N1", "--mem=50M"], options].concat();
        submit("stw-carol", &options, script)
    };
    // By type, without, and none at all where there are some.
    let cases = [
        (of(&["--gres=gpu:fake:2"]), 2.0, "fake=2"),
        (of(&["--gpus=1"]), 1.0, "fake=1"),
        (of(&[]), 0.0, "null"),
    ];
    let mut hours = 0.0;
    for (job, gpus, types) in &cases {
        job.wait_ended(PATIENCE);
        let found = ended(data.path(), job);
        let told = (number(&found, "alloc_gpus"), &*found["gpu_types"]);
        assert_eq!(told, (*gpus, *types), "{found:?}");
        let elapsed = number(&found, "elapsed_seconds");
        assert!(elapsed >= 3.0, "{elapsed}");
        assert!(near(number(&found, "gpu_hours_reserved"), gpus * elapsed / 3600.0));
        assert_eq!(found["gpu_used_seconds"], "null", "nobody measured them");
        assert_accounted(&found);
        hours += gpus * elapsed / 3600.0;
    }
    // Other tests have jobs there too: no fewer hours than of these.
    let analyze = ["analyze", "--days", "1", "--json", "--table", "gpu_types"];
    let said = done(&command(data.path(), &analyze).output().unwrap());
    let types: serde_json::Value = serde_json::from_str(&said).unwrap();
    let fake = types.as_array().unwrap().iter().find(|line| line["gpu_type"] == "fake");
    let fake = fake.unwrap_or_else(|| panic!("{types}"));
    assert!(fake["gpu_hours"].as_f64().unwrap() >= 0.999 * hours, "{hours}: {types}");
}
