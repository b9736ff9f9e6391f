//! Lists that are as nearly all of sacct's are, for a third of the time that any list takes or less.
//!
//! Each function says `None` of a list that is otherwise, whatever it is: that is read by those that
//! read any.

use super::{comma, commas};
use crate::slurm::number::{canonical_u32, leading, power, small};

/// Memory and disk of what a step used: `cpu=…,energy=0,fs/disk=12,mem=4096,…`.
#[must_use]
#[inline]
pub fn used(list: &[u8]) -> Option<[u64; 2]> {
    let rest = list.strip_prefix(b"cpu=")?;
    let rest = match rest.split_first_chunk() {
        // A time without days.
        Some((time, rest)) if rest.first() == Some(&b',') && commas(*time) == 0 => rest,
        _ => rest.get(comma(rest)?..)?,
    };
    let rest = rest.strip_prefix(b",energy=0,fs/disk=")?;
    let (disk, rest) = leading(rest)?;
    let (memory, rest) = leading(rest.strip_prefix(b",mem=")?)?;
    (rest.first() == Some(&b',')).then_some([memory, disk])
}

/// Disk of what a step wrote: `energy=0,fs/disk=12`.
#[must_use]
#[inline]
pub fn written(list: &[u8]) -> Option<u64> {
    small(list.strip_prefix(b"energy=0,fs/disk=")?).map(u64::from)
}

/// What a job was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Given<'a> {
    /// Its billing weight.
    pub billing: u64,
    /// Memory, in bytes.
    pub memory: u64,
    /// GPUs.
    pub gpus: u64,
    /// GPUs by type as [`gpus`](super::gpus) has them: no type is empty, one is a piece of the list.
    pub gpu_types: &'a str,
}

/// What a job was given: `billing=4,cpu=4,mem=16384M,node=1`, or
/// `billing=4,cpu=4,gres/gpu:a100=2,gres/gpu=2,mem=16384M,node=1`.
#[must_use]
#[inline]
pub fn given(list: &str) -> Option<Given<'_>> {
    let (billing, rest) = leading(list.as_bytes().strip_prefix(b"billing=")?)?;
    let (_, mut rest) = leading(rest.strip_prefix(b",cpu=")?)?;
    let (mut gpus, mut gpu_types) = (0, "");
    if let Some(typed) = rest.strip_prefix(b",gres/gpu:") {
        let end = comma(typed)?;
        let place = list.len() - typed.len();
        gpu_types = list.get(place..place + end)?;
        canonical_u32(gpu_types.split_once('=')?.1)?;
        (gpus, rest) = leading(typed.get(end..)?.strip_prefix(b",gres/gpu=")?)?;
    }
    let (memory, rest) = leading(rest.strip_prefix(b",mem=")?)?;
    let (letter, rest) = rest.split_first()?;
    // Nothing more may follow: it could be other GPUs.
    small(rest.strip_prefix(b",node=")?)?;
    let memory = memory.checked_mul(power(*letter)?)?;
    Some(Given { billing, memory, gpus, gpu_types })
}

#[cfg(test)]
mod tests {
    use super::{Given, given, used, written};
    use crate::slurm::tres::{amounts, gpus};
    use proptest::prelude::*;

    #[test]
    fn of_a_step() {
        let list = "cpu=00:00:07,energy=0,fs/disk=12,mem=4096,pages=0,vmem=4096";
        assert_eq!(used(list.as_bytes()), Some([4096, 12]));
        for other in ["", "cpu=1", "cpu=1,energy=3,fs/disk=12,mem=4096,pages=0,vmem=1"] {
            assert_eq!(used(other.as_bytes()), None, "{other}");
        }
        assert_eq!(written(b"energy=0,fs/disk=12"), Some(12));
        for other in ["", "energy=3,fs/disk=1", "energy=0,fs/disk=", "energy=0,fs/disk=1K"] {
            assert_eq!(written(other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn of_a_job() {
        let none = Given { billing: 4, memory: 16 << 30, gpus: 0, gpu_types: "" };
        assert_eq!(given("billing=4,cpu=4,mem=16384M,node=1"), Some(none));
        let two = Given { gpus: 2, gpu_types: "a100=2", ..none };
        let list = "billing=4,cpu=4,gres/gpu:a100=2,gres/gpu=2,mem=16384M,node=1";
        assert_eq!(given(list), Some(two));
        for other in [
            "",
            "cpu=4,mem=16384M,node=1",
            "billing=4,cpu=4,mem=1638400,node=1",
            "billing=4,cpu=4,mem=1.50G,node=1",
            "billing=4,cpu=4,mem=16384M,node=1,gres/gpu=1",
            "billing=4,cpu=4,gres/gpu=1,mem=16384M,node=1",
            "billing=4,cpu=4,gres/gpu:a=1,gres/gpu:b=1,gres/gpu=2,mem=16384M,node=1",
            "billing=4,cpu=4,gres/gpu:a=01,gres/gpu=2,mem=16384M,node=1",
            "billing=4,cpu=4,gres/gpu:a=1K,gres/gpu=2,mem=16384M,node=1",
            "billing=4,cpu=4,gres/gpu:a,gres/gpu=2,mem=16384M,node=1",
            "billing=18446744073709551614,cpu=4,mem=16384M,node=1",
            "billing=4,cpu=4,mem=999999999999E,node=1",
        ] {
            assert_eq!(given(other), None, "{other}");
        }
    }

    proptest! {
        #[test]
        fn what_was_used_is_read_as_in_any(
            text in "cpu=[0-9:]{0,9}(,mem=[0-9])?,energy=0,fs/disk=[0-9]{0,17},mem=[0-9]{0,17}[K,]?(pages=0,vmem=[0-9]{0,9})?"
        ) {
            if let Some(usual) = used(text.as_bytes()) {
                prop_assert_eq!(amounts(&text, ["mem", "fs/disk"]), usual.map(|amount| Ok(Some(amount))));
            }
        }

        #[test]
        fn what_was_written_is_read_as_in_any(text in "energy=0,fs/disk=[0-9]{0,11}[K,]?(pages=0)?") {
            if let Some(usual) = written(text.as_bytes()) {
                prop_assert_eq!(amounts(&text, ["fs/disk"]), [Ok(Some(usual))]);
            }
        }

        #[test]
        fn what_was_given_is_read_as_in_any(
            first in "billing=[0-9]{0,17},cpu=[0-9]{1,3}",
            named in "(,gres/gpu:[a-z0-9=]{0,6}=[0-9]{0,2})?(,gres/gpu=[0-9]{0,12})?",
            last in ",mem=[0-9]{0,17}[KMGTE,]?,node=[0-9]{0,9}(,gres/gpu=1)?",
        ) {
            let text = [first, named, last].concat();
            if let Some(Given { billing, memory, gpus: count, gpu_types }) = given(&text) {
                let usual = [billing, memory].map(|amount| Ok(Some(amount)));
                prop_assert_eq!(amounts(&text, ["billing", "mem"]), usual);
                let any = gpus(&text).unwrap().unwrap_or_default();
                prop_assert_eq!(any, (count, gpu_types.to_owned()));
            }
        }
    }
}
