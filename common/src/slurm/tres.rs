//! TRES strings, Slurm's lists of trackable resources.
//!
//! Two kinds share the form `name=amount,…`: what a job was given (AllocTRES, `cpu=4,mem=8G`) and
//! what a step used (TRESUsageInTot, `cpu=00:00:12,mem=2032K`), where `cpu` is a time. Letters are
//! powers of 1024 for every resource (`pages=1.50K`), and memory without a letter is in bytes.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::ParseError;
use super::duration;
use super::number::binary;
use crate::unit::Bytes;

pub mod usual;

/// GPUs, of whatever type.
const GPU: &str = "gres/gpu";

/// Prefix of the resources that are GPUs of a stated type.
const GPU_TYPE: &str = "gres/gpu:";

/// A read TRES string.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tres {
    resources: BTreeMap<String, Value>,
    gpus: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Value {
    Amount(u64),
    Time(Duration),
}

impl Tres {
    /// Whether the string names no resource.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.resources.is_empty()
    }

    /// The amount of the resource with this name, in bytes if it is memory.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<u64> {
        match self.resources.get(name) {
            Some(Value::Amount(amount)) => Some(*amount),
            _ => None,
        }
    }

    /// CPUs given.
    #[must_use]
    pub fn cpus(&self) -> Option<u64> {
        self.get("cpu")
    }

    /// CPU time used.
    #[must_use]
    pub fn cpu_time(&self) -> Option<Duration> {
        match self.resources.get("cpu") {
            Some(Value::Time(time)) => Some(*time),
            _ => None,
        }
    }

    /// Memory given or used.
    #[must_use]
    pub fn memory(&self) -> Option<Bytes> {
        self.get("mem").map(Bytes::new)
    }

    /// Nodes given.
    #[must_use]
    pub fn nodes(&self) -> Option<u64> {
        self.get("node")
    }

    /// The billing weight of what was given.
    #[must_use]
    pub fn billing(&self) -> Option<u64> {
        self.get("billing")
    }

    /// Energy used, in joules.
    #[must_use]
    pub fn energy(&self) -> Option<u64> {
        self.get("energy")
    }

    /// GPUs given: the untyped figure, which counts all, else the sum over the types.
    ///
    /// `None` if the string names no GPUs. In the AllocTRES of a job that ran this means that it
    /// had none; in that of a job that has not started it means nothing.
    #[must_use]
    pub fn gpus(&self) -> Option<u64> {
        self.gpus
    }

    /// GPUs given, by type, for those whose type Slurm states; MIG profiles are types.
    pub fn gpus_by_type(&self) -> impl Iterator<Item = (&str, u64)> {
        typed_gpus(&self.resources)
    }

    /// GPU memory used.
    #[must_use]
    pub fn gpu_memory(&self) -> Option<Bytes> {
        self.get("gres/gpumem").map(Bytes::new)
    }

    /// GPU utilisation in per cent, summed over the GPUs.
    #[must_use]
    pub fn gpu_utilisation(&self) -> Option<u64> {
        self.get("gres/gpuutil")
    }
}

/// Empty text is an empty list: Slurm prints it for what is not known.
impl FromStr for Tres {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Tres, ParseError> {
        let mut resources = BTreeMap::new();
        if text.is_empty() {
            return Ok(Tres::default());
        }
        for item in text.split(',') {
            let wrong = |expected| ParseError::new("TRES", item, expected);
            let (name, amount) = item
                .split_once('=')
                .filter(|(name, _)| is_name(name))
                .ok_or_else(|| wrong("a resource such as cpu=4"))?;
            if is_unset(amount) {
                continue;
            }
            let value = if name == "cpu" && amount.contains(':') {
                duration::elapsed(amount)?.map(Value::Time)
            } else {
                binary(amount, 1).map(Value::Amount)
            };
            let value = value.ok_or_else(|| wrong("an amount such as mem=8G or pages=0"))?;
            if resources.insert(name.to_owned(), value).is_some() {
                return Err(wrong("a resource that is named once"));
            }
        }
        let gpus = match resources.get("gres/gpu") {
            Some(Value::Amount(count)) => Some(*count),
            _ => sum(typed_gpus(&resources).map(|(_, count)| count))
                .ok_or_else(|| ParseError::new("TRES", text, "a countable number of GPUs"))?,
        };
        Ok(Tres { resources, gpus })
    }
}

fn typed_gpus(resources: &BTreeMap<String, Value>) -> impl Iterator<Item = (&str, u64)> {
    resources.iter().filter_map(|(name, value)| match value {
        Value::Amount(count) => Some((name.strip_prefix(GPU_TYPE)?, *count)),
        Value::Time(_) => None,
    })
}

/// The sum, `Some(None)` of nothing, `None` on overflow.
fn sum(mut counts: impl Iterator<Item = u64>) -> Option<Option<u64>> {
    counts.try_fold(None, |sum: Option<u64>, count| match sum {
        Some(sum) => sum.checked_add(count).map(Some),
        None => Some(Some(count)),
    })
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && !text.contains(|c: char| c.is_whitespace() || c.is_control())
}

/// 2⁶⁴−2, by which Slurm means that it has no figure; seen for energy without a sensor.
fn is_unset(amount: &str) -> bool {
    amount == "18446744073709551614"
}

/// The amount of one resource, without a copy of the others: for lists that are read by the
/// million. `None` if the list does not name it.
///
/// # Errors
/// If that resource's amount cannot be read; what stands beside it is not looked at.
#[inline]
pub fn amount(list: &str, name: &str) -> Result<Option<u64>, ParseError> {
    let [amount] = amounts(list, [name]);
    amount
}

/// The amounts of several resources, found in one go.
///
/// # Errors
/// If a resource's amount cannot be read.
#[inline]
pub fn amounts<const N: usize>(
    list: &str,
    names: [&str; N],
) -> [Result<Option<u64>, ParseError>; N] {
    let mut found = [None; N];
    for item in pieces(list) {
        for (name, found) in names.iter().zip(&mut found) {
            // The first letter tells most apart, for less than a comparison.
            if item.as_bytes().first() == name.as_bytes().first() && found.is_none() {
                *found = item.strip_prefix(name).and_then(|rest| rest.strip_prefix('='));
            }
        }
        if found.iter().all(Option::is_some) {
            break;
        }
    }
    found.map(|text| match text.filter(|text| !is_unset(text)) {
        None => Ok(None),
        Some(text) => match binary(text, 1) {
            Some(amount) => Ok(Some(amount)),
            None => Err(ParseError::new("TRES", text, "an amount such as 8G or 0")),
        },
    })
}

/// Where the first comma is, found eight bytes at a time.
#[must_use]
#[inline]
pub fn comma(text: &[u8]) -> Option<usize> {
    let (eights, rest) = text.as_chunks::<8>();
    for (at, eight) in eights.iter().enumerate() {
        let commas = commas(*eight);
        if commas != 0 {
            return Some(at * 8 + commas.trailing_zeros() as usize / 8);
        }
    }
    let found = rest.iter().position(|byte| *byte == b',');
    found.map(|at| eights.len() * 8 + at)
}

/// Bits in the first byte that is a comma, and none in those before it.
#[inline]
fn commas(eight: [u8; 8]) -> u64 {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    let others = u64::from_le_bytes(eight) ^ (ONES * b',' as u64);
    // The lowest of these bits belongs to the first byte that is 0.
    others.wrapping_sub(ONES) & !others & (ONES << 7)
}

/// The list at its commas. For texts this short the search that `str::split` prepares costs more than
/// it saves.
fn pieces(list: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(list);
    std::iter::from_fn(move || {
        let list = rest?;
        let end = comma(list.as_bytes());
        rest = end.and_then(|end| list.get(end + 1..));
        end.map_or(Some(list), |end| list.get(..end))
    })
}

/// GPUs of a list, and their types as `a100=2,v100=1` in order of names. The untyped figure counts
/// all; without it the types are summed.
///
/// # Errors
/// If a number of GPUs cannot be read.
pub fn gpus(list: &str) -> Result<Option<(u64, String)>, ParseError> {
    // Most lists name nothing with a slash in it, which is known at a glance.
    if !list.as_bytes().contains(&b'/') {
        return Ok(None);
    }
    // Hardly ever more than one: no map is needed.
    let mut types: Vec<(&str, u64)> = Vec::new();
    let mut untyped = None;
    for item in pieces(list) {
        let Some((kind, text)) = item.strip_prefix(GPU).and_then(|item| item.split_once('='))
        else {
            continue;
        };
        let wrong = || ParseError::new("TRES", text, "a number of GPUs");
        let count = |text| binary(text, 1).ok_or_else(wrong);
        if kind.is_empty() {
            if untyped.is_none() && !is_unset(text) {
                untyped = Some(count(text)?);
            }
        } else if let Some(model) = kind.strip_prefix(':') {
            match types.iter_mut().find(|(known, _)| *known == model) {
                Some((_, sum)) => *sum = sum.checked_add(count(text)?).ok_or_else(wrong)?,
                None => types.push((model, count(text)?)),
            }
        }
    }
    if untyped.is_none() && !types.is_empty() {
        untyped = Some(types.iter().fold(0, |sum, (_, count)| u64::saturating_add(sum, *count)));
    }
    types.sort_unstable();
    let mut text = String::new();
    for (model, count) in types {
        let comma = if text.is_empty() { "" } else { "," };
        text.extend([comma, model, "=", &count.to_string()]);
    }
    Ok(untyped.map(|count| (count, text)))
}

/// In the form that is read again as the same: memory in bytes, names in order.
impl fmt::Display for Tres {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut comma = "";
        for (name, value) in &self.resources {
            match value {
                Value::Amount(amount) => write!(f, "{comma}{name}={amount}")?,
                Value::Time(time) => write!(f, "{comma}{name}={}", duration::format(*time))?,
            }
            comma = ",";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Tres;
    use crate::unit::Bytes;
    use proptest::prelude::*;

    fn tres(text: &str) -> Tres {
        text.parse().unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn allocation() {
        let t = tres(
            "billing=4,cpu=4,fs/disk=5087,gres/gpu=2,gres/gpu:a100=2,license/x=1,mem=8G,node=1",
        );
        assert_eq!(t.cpus(), Some(4));
        assert_eq!(t.cpu_time(), None);
        assert_eq!(t.memory(), Some(Bytes::new(8 << 30)));
        assert_eq!(t.nodes(), Some(1));
        assert_eq!(t.billing(), Some(4));
        assert_eq!(t.gpus(), Some(2));
        assert_eq!(t.gpus_by_type().collect::<Vec<_>>(), [("a100", 2)]);
        assert_eq!(t.get("fs/disk"), Some(5087));
        assert_eq!(t.get("license/x"), Some(1));
        assert_eq!(t.get("license/y"), None);
    }

    #[test]
    fn usage() {
        let t = tres(
            "cpu=24-12:52:11,energy=0,fs/disk=10576253,gres/gpumem=38888M,gres/gpuutil=100,\
             mem=48102112K,pages=1.50K,vmem=0",
        );
        let seconds = 24 * 86_400 + 12 * 3_600 + 52 * 60 + 11;
        assert_eq!(t.cpu_time(), Some(Duration::from_secs(seconds)));
        assert_eq!(t.cpus(), None);
        assert_eq!(t.energy(), Some(0));
        assert_eq!(t.memory(), Bytes::from_kib(48_102_112));
        assert_eq!(t.get("pages"), Some(1536));
        assert_eq!(t.gpu_memory(), Some(Bytes::new(38_888 << 20)));
        assert_eq!(t.gpu_utilisation(), Some(100));
        assert_eq!(t.gpus(), None);
    }

    #[test]
    fn memory_spellings() {
        let cases = [
            ("mem=0", 0),
            ("mem=500M", 500 << 20),
            ("mem=1.50T", 3 << 39),
            ("mem=62.50G", 125 << 29),
            ("mem=2032K", 2032 << 10),
            ("mem=2080768", 2_080_768),
        ];
        for (text, bytes) in cases {
            assert_eq!(tres(text).memory(), Some(Bytes::new(bytes)), "{text}");
        }
    }

    #[test]
    fn gpu_totals() {
        let cases = [
            ("A10", "cpu=4,mem=8G,gres/gpu=2", Some(2)),
            ("A11 typed alone", "gres/gpu:a100=2", Some(2)),
            ("MIG", "gres/gpu:1g.10gb=1", Some(1)),
            ("two types", "gres/gpu:a100=2,gres/gpu:v100=3", Some(5)),
            ("total wins over the types", "gres/gpu=4,gres/gpu:a100=2", Some(4)),
            ("none stated", "cpu=4", None),
            ("zero stated", "gres/gpu=0", Some(0)),
            ("many", "gres/gpu=320", Some(320)),
            ("memory is no GPU", "gres/gpumem=5,gres/gpuutil=3", None),
            ("shards are no GPUs", "gres/shard=4", None),
            ("empty", "", None),
        ];
        for (case, text, expected) in cases {
            assert_eq!(tres(text).gpus(), expected, "{case}");
        }
    }

    #[test]
    fn unset_is_absent() {
        let t = tres("cpu=1,energy=18446744073709551614,mem=1G");
        assert_eq!(t.energy(), None);
        assert_eq!(t.cpus(), Some(1));
        assert!(tres("").is_empty());
        assert!(!t.is_empty());
    }

    #[test]
    fn garbage_is_an_error_that_names_it() {
        let cases = [
            ("UNKNOWN", "UNKNOWN"),
            ("cpu=4,gres/gpu=x", "gres/gpu=x"),
            ("cpu=4,cpu=4", "cpu=4"),
            ("cpu=4,cpu=00:00:01", "cpu=00:00:01"),
            ("cpu=-4", "cpu=-4"),
            ("cpu=", "cpu="),
            ("=4", "=4"),
            ("cpu=4,", ""),
            (",cpu=4", ""),
            ("cpu==4", "cpu==4"),
            ("cpu=4 ,mem=1G", "cpu=4 "),
            (" cpu=4", " cpu=4"),
            ("mem=16?", "mem=16?"),
            ("mem=00:00:01", "mem=00:00:01"),
            ("mem=16E", "mem=16E"),
            ("energy=18446744073709551616", "energy=18446744073709551616"),
            ("cpu=node17", "cpu=node17"),
            ("cpu=00:61:00", "00:61:00"),
            ("gres/gpu:a=15E,gres/gpu:b=15E", "gres/gpu:a=15E,gres/gpu:b=15E"),
        ];
        for (text, culprit) in cases {
            let error = text.parse::<Tres>().unwrap_err();
            assert_eq!(error.text, culprit, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn round_trip(
            amounts in proptest::collection::btree_map("[a-z]{1,4}(/[a-z:]{1,8})?", any::<u64>(), 0..8),
            seconds: Option<u32>,
        ) {
            let mut items: Vec<String> = amounts
                .iter()
                .filter(|(name, amount)| name.as_str() != "cpu" && **amount != u64::MAX - 1)
                .map(|(name, amount)| format!("{name}={amount}"))
                .collect();
            if let Some(seconds) = seconds {
                items.push(format!("cpu={:02}:{:02}", seconds / 60, seconds % 60));
            }
            let first: Tres = items.join(",").parse().unwrap();
            let again: Tres = first.to_string().parse().unwrap();
            prop_assert_eq!(&again, &first);
            let used = seconds.map(|s| Duration::from_secs(u64::from(s)));
            prop_assert_eq!(first.cpu_time(), used);
        }

        #[test]
        fn never_panics(text in "\\PC*|([a-z/:]{0,8}=[0-9.:KMG-]{0,12},?){0,4}") {
            if let Err(error) = text.parse::<Tres>() {
                prop_assert!(text.contains(&error.text));
            }
        }
    }
}
