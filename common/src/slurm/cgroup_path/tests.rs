use super::{
    CgroupPlace, Found, JobDir, Part, Scope, Task, Version, job_dir, parse, scope_dir, step_dir,
    task_dir, uid_dir,
};
use crate::id::{JobId, NodeName, StepId, Uid};
use proptest::prelude::*;

fn scope(version: Version, node: Option<&str>) -> Scope {
    let node = node.map(|name| NodeName::new(name).unwrap());
    Scope { version, node }
}

fn id(number: u32) -> JobDir {
    JobDir::Id(JobId::new(number).unwrap())
}

fn sluid(text: &str) -> JobDir {
    JobDir::Sluid(text.parse().unwrap())
}

/// All that a place says, in the order of its path.
fn described(place: &CgroupPlace) -> String {
    let mut words = vec![format!("{:?}", place.scope.version)];
    words.extend(place.scope.node.as_ref().map(|node| format!("node {node}")));
    words.extend(place.uid.map(|uid| format!("uid {uid}")));
    words.push(match place.job {
        JobDir::Id(id) => format!("job {id}"),
        JobDir::Sluid(sluid) => format!("run {sluid}"),
    });
    words.extend(place.step.map(|step| format!("step {step}")));
    words.extend(place.task.map(|task| match task {
        Task::Number(number) => format!("task {number}"),
        Task::Special => "task special".to_owned(),
    }));
    words.push(format!("{:?}", place.part));
    words.join(" ")
}

#[test]
fn every_layout() {
    let cases = [
        ("L1 job", "/slurm/uid_1000/job_12", "V1 uid 1000 job 12 Job"),
        ("L1 step", "/slurm/uid_0/job_12/step_batch", "V1 uid 0 job 12 step batch Step"),
        ("L1 task", "slurm/uid_1/job_12/step_0/task_3", "V1 uid 1 job 12 step 0 task 3 Task"),
        ("L1 absolute", "/sys/fs/cgroup/cpu,cpuacct/slurm/uid_1/job_12", "V1 uid 1 job 12 Job"),
        (
            "L2",
            "/slurm_n1/uid_1/job_12/step_extern/task_0",
            "V1 node n1 uid 1 job 12 step extern task 0 Task",
        ),
        ("L2 underscores", "/slurm_gpu_a_01/uid_1/job_12", "V1 node gpu_a_01 uid 1 job 12 Job"),
        ("L3 job", "/system.slice/slurmstepd.scope/job_12", "V2 job 12 Job"),
        ("L3 step", "/system.slice/slurmstepd.scope/job_12/step_0", "V2 job 12 step 0 Step"),
        (
            "L3 stepd",
            "/system.slice/slurmstepd.scope/job_12/step_0/slurm",
            "V2 job 12 step 0 StepSlurm",
        ),
        ("L3 user", "/system.slice/slurmstepd.scope/job_12/step_0/user", "V2 job 12 step 0 User"),
        (
            "L3 task",
            "/system.slice/slurmstepd.scope/job_12/step_0/user/task_1",
            "V2 job 12 step 0 task 1 Task",
        ),
        (
            "L3 het step",
            "/system.slice/slurmstepd.scope/job_12/step_0+1",
            "V2 job 12 step 0+1 Step",
        ),
        (
            "L3 interactive",
            "/system.slice/slurmstepd.scope/job_12/step_interactive",
            "V2 job 12 step interactive Step",
        ),
        ("L3 TBD", "/system.slice/slurmstepd.scope/job_12/step_TBD", "V2 job 12 step TBD Step"),
        ("L4", "/system.slice/n1_slurmstepd.scope/job_12", "V2 node n1 job 12 Job"),
        (
            "L4 underscores",
            "/system.slice/gpu_1_slurmstepd.scope/job_12",
            "V2 node gpu_1 job 12 Job",
        ),
        ("L5", "/slurm.slice/slurm-jobs.slice/slurmstepd.scope/job_12", "V2 job 12 Job"),
        (
            "L6",
            "/system.slice/slurmstepd.scope/s5K1KKYAYG5D00/step_batch/user/task_0",
            "V2 run s5K1KKYAYG5D00 step batch task 0 Task",
        ),
        (
            "L6 and L4",
            "/system.slice/n1_slurmstepd.scope/s5K1KKYAYG5D00",
            "V2 node n1 run s5K1KKYAYG5D00 Job",
        ),
        (
            "L7",
            "/system.slice/slurmstepd.scope/job_12/step_extern/user/task_special",
            "V2 job 12 step extern task special Task",
        ),
        (
            "L9 container",
            "/kubepods.slice/pod1.slice/cri-1.scope/system.slice/slurmstepd.scope/job_12",
            "V2 job 12 Job",
        ),
        ("L9 hybrid", "/unified/system.slice/slurmstepd.scope/job_12/", "V2 job 12 Job"),
    ];
    for (case, path, expected) in cases {
        let place = parse(path).and_then(Found::job).unwrap_or_else(|| panic!("{case}: {path}"));
        assert_eq!(described(&place), expected, "{case}");
        assert!(!place.below, "{case}");
    }
}

#[test]
fn groups_of_the_job_belong_to_it() {
    let cases = [
        ("in a task", "slurmstepd.scope/job_1/step_0/user/task_0/crun-abc/x", Part::Task),
        ("in user", "slurmstepd.scope/job_1/step_0/user/mine", Part::User),
        ("in the step", "slurmstepd.scope/job_1/step_0/mine/task_0", Part::Step),
        ("in the job", "slurmstepd.scope/job_1/mine", Part::Job),
        ("in slurm", "slurmstepd.scope/job_1/step_0/slurm/x", Part::StepSlurm),
        ("bad step", "slurmstepd.scope/job_1/step_", Part::Job),
        ("bad task", "slurmstepd.scope/job_1/step_0/user/task_x", Part::User),
        (
            "Slurm in a job",
            "slurmstepd.scope/job_1/step_0/user/task_0/system.slice/slurmstepd.scope/job_2",
            Part::Task,
        ),
    ];
    for (case, path, part) in cases {
        let place = parse(path).and_then(Found::job).unwrap();
        assert_eq!((place.job, place.part, place.below), (id(1), part, true), "{case}");
    }
}

#[test]
fn what_is_no_job() {
    let v2 = || scope(Version::V2, None);
    let cases = [
        ("/system.slice/slurmstepd.scope", Some(Found::Scope(v2()))),
        ("/slurm", Some(Found::Scope(scope(Version::V1, None)))),
        ("/slurm_n1/uid_5", Some(Found::Uid(scope(Version::V1, Some("n1")), Uid::new(5)))),
        ("/system.slice/slurmstepd.scope/system", Some(Found::Slurm(v2()))),
        ("/system.slice/slurmstepd.scope/slurmd", Some(Found::Slurm(v2()))),
        ("/system.slice/slurmstepd.scope/system/x", Some(Found::Slurm(v2()))),
        ("/system.slice/slurmstepd.scope/job_0", None),
        ("/system.slice/slurmstepd.scope/job_12x", None),
        ("/system.slice/slurmstepd.scope/uid_1/job_12", None),
        ("/system.slice/slurmd.service", None),
        ("/system.slice/slurm_exporter.service", None),
        ("/system.slice/slurmstepd.scope.d/job_12", None),
        ("/slurm/job_12", None),
        ("/slurm/system", None),
        ("/slurm_/uid_1/job_12", None),
        ("/user.slice/user-1000.slice/session-3.scope", None),
        ("/job_12/step_0", None),
        ("/", None),
        ("", None),
    ];
    for (path, expected) in cases {
        assert_eq!(parse(path), expected, "{path:?}");
    }
}

#[test]
fn scope_names() {
    let (v1, v2) = (Version::V1, Version::V2);
    let cases = [
        ("slurm", Some(scope(v1, None))),
        ("slurm_n1", Some(scope(v1, Some("n1")))),
        ("slurm_a_b", Some(scope(v1, Some("a_b")))),
        ("slurm_n1.site.org", Some(scope(v1, Some("n1.site.org")))),
        ("slurmstepd.scope", Some(scope(v2, None))),
        ("n1_slurmstepd.scope", Some(scope(v2, Some("n1")))),
        ("slurm_n1_slurmstepd.scope", Some(scope(v2, Some("slurm_n1")))),
    ];
    for (name, expected) in cases {
        assert_eq!(scope_dir(name), expected, "{name:?}");
    }
    for name in [
        "",
        "slurm_",
        "_slurmstepd.scope",
        "slurmstepd.scope.d",
        "n1_slurmstepd.scope.d",
        "Slurm",
        "SLURM_n1",
        "slurmd",
        "slurmstepd",
        "slurm.slice",
        "slurm_x.service",
        "slurm_a b",
        "n1-slurmstepd.scope",
        "slurm-n1",
    ] {
        assert_eq!(scope_dir(name), None, "{name:?}");
    }
}

#[test]
fn names_inside() {
    assert_eq!(uid_dir("uid_0"), Some(Uid::new(0)));
    assert_eq!(job_dir("job_7"), Some(id(7)));
    assert_eq!(job_dir("sE1SM7GTHXJ700"), Some(sluid("sE1SM7GTHXJ700")));
    assert_eq!(step_dir("step_batch"), Some(StepId::Batch));
    assert_eq!(task_dir("task_0"), Some(Task::Number(0)));
    assert_eq!(task_dir("task_special"), Some(Task::Special));
    for name in [
        "",
        "uid_",
        "uid_x",
        "uid_01",
        "UID_1",
        "job_",
        "job_0",
        "job_12x",
        "job_012",
        "JOB_1",
        "job_-1",
        "job_4294967296",
        "se1sm7gthxj700",
        "SE1SM7GTHXJ700",
        "sG1SM7GTHXJ700",
        "sE1SM7GTHXJ70",
        "step_",
        "step_x",
        "step_step_0",
        "batch",
        "Step_0",
        "step_tbd",
        "task_",
        "task_x",
        "task_01",
        "task_Special",
        "0",
        "system",
        "slurmd",
    ] {
        assert_eq!(uid_dir(name), None, "{name:?}");
        assert_eq!(job_dir(name), None, "{name:?}");
        assert_eq!(step_dir(name), None, "{name:?}");
        assert_eq!(task_dir(name), None, "{name:?}");
    }
}

proptest! {
    #[test]
    fn built_paths_are_read(
        prefix in "(/[a-z]{1,6}\\.slice){0,3}", node in proptest::option::of("[a-z][a-z0-9_-]{0,8}"),
        job in 1..u32::MAX - 2, step: u32, task: u32,
    ) {
        let name = match &node {
            Some(node) => format!("{node}_slurmstepd.scope"),
            None => "slurmstepd.scope".to_owned(),
        };
        let path = format!("{prefix}/{name}/job_{job}/step_{step}/user/task_{task}");
        let place = parse(&path).and_then(Found::job).unwrap();
        prop_assert_eq!(place.job, id(job));
        prop_assert_eq!(place.step, Some(StepId::new(step)));
        prop_assert_eq!(place.task, Some(Task::Number(task)));
        prop_assert_eq!(place.scope.node.map(|n| n.to_string()), node);
    }

    #[test]
    fn never_panics(path in "\\PC*|((slurm|slurmstepd\\.scope|job_1|step_0|uid_1|user|x)/){0,6}") {
        let _ = parse(&path);
    }
}
