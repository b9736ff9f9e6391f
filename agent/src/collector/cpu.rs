//! CPU time and use.

use steward_common::metric;

use crate::node::JobSample;
use crate::sample::Samples;

pub(super) fn collect(job: &JobSample, out: &mut Samples) {
    let total = job.cpu.total.map(|time| time.as_secs_f64());
    let user = job.cpu.user.map(|time| time.as_secs_f64());
    let system = job.cpu.system.map(|time| time.as_secs_f64());

    out.job_if(&metric::JOBS_CPU_TIME_TOTAL, job.id, total);
    out.job_if(&metric::JOBS_CPU_USAGE_SECONDS, job.id, total);
    out.job_if(&metric::JOBS_USER_TIME, job.id, user);
    out.job_if(&metric::JOBS_SYSTEM_TIME, job.id, system);
    for (mode, time) in [("user", user), ("system", system)] {
        if let Some(time) = time {
            out.job(&metric::JOBS_CPU_SECONDS, job.id, &[&mode], time);
        }
    }
    for (core, time) in job.cpu.cores.iter().flatten() {
        let time = time.as_secs_f64();
        out.job(&metric::JOBS_CPU_TIME_CORE, job.id, &[core], time);
        out.job(&metric::JOBS_CPU_CORE_SECONDS, job.id, &[core], time);
    }

    out.job_if(&metric::JOBS_CPU_CORES_BUSY, job.id, job.cores_busy);
    let percent = job.cores_busy.map(|cores| cores * 100.0);
    let cpus = job.cpus.map(|cpus| f64::from(cpus.get()));
    out.job_if(&metric::JOBS_CPU_PERCENT, job.id, percent);
    out.job_if(
        &metric::JOBS_CPU_PERCENT_PER_CORE,
        job.id,
        percent.zip(cpus).map(|(percent, cpus)| percent / cpus),
    );
    out.job_if(&metric::JOBS_CPUS, job.id, cpus);
}
