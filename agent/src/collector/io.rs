//! Reads and writes.

use steward_common::metric;
use steward_common::unit::Bytes;

use super::float;
use crate::node::JobSample;
use crate::sample::Samples;

pub(super) fn collect(job: &JobSample, out: &mut Samples) {
    let Some(io) = job.io else { return };
    let read = Bytes::new(io.read_bytes);
    let written = Bytes::new(io.write_bytes);

    out.job(&metric::JOBS_READ_MB, job.id, &[], read.mib());
    out.job(&metric::JOBS_WRITE_MB, job.id, &[], written.mib());
    out.job(&metric::JOBS_READ_COUNT, job.id, &[], float(io.syscr));
    out.job(&metric::JOBS_WRITE_COUNT, job.id, &[], float(io.syscw));

    for (direction, stored, requested, calls) in
        [("read", io.read_bytes, io.rchar, io.syscr), ("write", io.write_bytes, io.wchar, io.syscw)]
    {
        out.job(&metric::JOBS_IO_BYTES, job.id, &[&direction], float(stored));
        out.job(&metric::JOBS_IO_REQUESTED_BYTES, job.id, &[&direction], float(requested));
        out.job(&metric::JOBS_IO_CALLS, job.id, &[&direction], float(calls));
    }
}
