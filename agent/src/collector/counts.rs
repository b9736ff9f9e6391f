//! What the kernel counts beside CPU time and memory: waiting, throttling, block devices.

use steward_common::metric;

use super::float;
use crate::kernel::count::Count;
use crate::node::JobSample;
use crate::sample::Samples;

pub(super) fn collect(job: &JobSample, out: &mut Samples) {
    let count = |count: Count| job.counts.get(&count).copied().map(float);
    for (resource, some, full) in [
        ("cpu", Count::StallCpuSome, Count::StallCpuFull),
        ("memory", Count::StallMemorySome, Count::StallMemoryFull),
        ("io", Count::StallIoSome, Count::StallIoFull),
    ] {
        for (tasks, micros) in [("some", count(some)), ("full", count(full))] {
            if let Some(micros) = micros {
                out.job(&metric::JOBS_STALL, job.id, &[&resource, &tasks], micros / 1e6);
            }
        }
    }

    out.job_if(&metric::JOBS_CPU_PERIODS, job.id, count(Count::CpuPeriods));
    out.job_if(&metric::JOBS_CPU_THROTTLED_PERIODS, job.id, count(Count::CpuThrottled));
    let throttled = count(Count::CpuThrottledNanos).map(|nanos| nanos / 1e9);
    out.job_if(&metric::JOBS_CPU_THROTTLED_SECONDS, job.id, throttled);

    out.job_if(&metric::JOBS_MEMORY_LIMIT_HITS, job.id, count(Count::MemoryLimitHits));
    out.job_if(&metric::JOBS_MEMORY_OOM_KILLS, job.id, count(Count::MemoryOomKills));

    for (direction, bytes, requests) in [
        ("read", Count::BlockReadBytes, Count::BlockReads),
        ("write", Count::BlockWriteBytes, Count::BlockWrites),
    ] {
        if let (Some(bytes), Some(requests)) = (count(bytes), count(requests)) {
            out.job(&metric::JOBS_BLOCK_IO_BYTES, job.id, &[&direction], bytes);
            out.job(&metric::JOBS_BLOCK_IO_REQUESTS, job.id, &[&direction], requests);
        }
    }
    out.job_if(&metric::JOBS_TASKS, job.id, job.tasks.map(float));
}
