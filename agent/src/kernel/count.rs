//! What the kernel counts for a cgroup beside CPU time: each only grows while the directory lives.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// One of the kernel's counters.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Count {
    /// Bytes read from block devices.
    BlockReadBytes,
    /// Read requests to block devices.
    BlockReads,
    /// Bytes written to block devices.
    BlockWriteBytes,
    /// Write requests to block devices.
    BlockWrites,
    /// Periods of CPU bandwidth that began with something to run.
    CpuPeriods,
    /// Those of them in which the job used up its bandwidth.
    CpuThrottled,
    /// Nanoseconds for which it was held back then.
    CpuThrottledNanos,
    /// Times the memory limit was reached.
    MemoryLimitHits,
    /// Processes killed because memory ran out.
    MemoryOomKills,
    /// Microseconds in which all (`full`) or some tasks waited for a CPU.
    StallCpuFull,
    /// See [`Self::StallCpuFull`].
    StallCpuSome,
    /// The same for the disk.
    StallIoFull,
    /// The same for the disk.
    StallIoSome,
    /// The same for memory.
    StallMemoryFull,
    /// The same for memory.
    StallMemorySome,
}

/// Counters with their values; one that this kernel does not have is not there.
pub type Counts = BTreeMap<Count, u64>;
