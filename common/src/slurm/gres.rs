//! Generic resources: what a node has (`sinfo %G`), what of it is in use (`GresUsed`), what a job
//! asks for (`--gres`), and lists of device numbers (`SLURM_JOB_GPUS`).

use super::ParseError;
use super::number::{binary, canonical_u32};

/// Most device numbers in one list; no node has as many devices.
const MAX_INDICES: usize = 4096;

const SPEC: &str = "a generic resource such as gpu:2 or gpu:a100:2(S:0-1)";
const INDICES: &str = "a list of at most 4096 device numbers such as 0,2-3";

/// One generic resource.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Gres {
    /// `gpu`, `shard`, `craynetwork`, …
    pub name: String,
    /// The type, where it is stated: `a100`, or a MIG profile, `a100_1g.5gb`.
    pub model: Option<String>,
    /// How many. A specification without a number means one.
    pub count: u64,
    /// Whether using it leaves as much for others (`no_consume`).
    pub no_consume: bool,
    /// What stands in parentheses.
    pub detail: Option<Detail>,
}

/// What Slurm adds to a generic resource in parentheses.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Detail {
    /// The sockets that it is near to: `S:0-1`.
    Sockets(Vec<u32>),
    /// The devices that are in use: `IDX:0,2-3`; none for `IDX:N/A`.
    Indices(Vec<u32>),
    /// Anything else, such as the use of each shard, `1/4,0/4`.
    Other(String),
}

/// Reads a list of generic resources. Empty, `(null)` and `N/A` are lists of none.
///
/// # Errors
/// If the text is no such list.
pub fn parse(text: &str) -> Result<Vec<Gres>, ParseError> {
    if matches!(text, "" | "(null)" | "N/A") {
        return Ok(Vec::new());
    }
    let wrong = |text| ParseError::new("generic resource", text, SPEC);
    let items = split(text).ok_or_else(|| wrong(text))?;
    let read = |item| one(item).ok_or_else(|| wrong(item));
    items.into_iter().map(read).collect()
}

/// Splits at the commas that are outside parentheses.
fn split(text: &str) -> Option<Vec<&str>> {
    let mut items = Vec::new();
    let (mut start, mut inside) = (0, false);
    for (at, c) in text.char_indices() {
        match c {
            '(' if inside => return None,
            ')' if !inside => return None,
            '(' => inside = true,
            ')' => inside = false,
            ',' if !inside => {
                items.push(text.get(start..at)?);
                start = at + 1;
            }
            _ => {}
        }
    }
    items.push(text.get(start..)?);
    (!inside).then_some(items)
}

fn one(item: &str) -> Option<Gres> {
    let (spec, detail) = match item.split_once('(') {
        Some((spec, rest)) => (spec, Some(detail(rest.strip_suffix(')')?)?)),
        None => (item, None),
    };
    let spec = spec.strip_prefix("gres:").unwrap_or(spec);
    let (spec, stated) = match spec.strip_prefix("gres/") {
        Some(tres) => {
            let (spec, count) = tres.split_once('=')?;
            (spec, Some(binary(count, 1)?))
        }
        None => (spec, None),
    };
    let mut parts: Vec<&str> = spec.split(':').collect();
    if parts.iter().any(|part| !is_word(part)) {
        return None;
    }
    let name = parts.remove(0).to_owned();
    let last = parts.last().and_then(|last| binary(last, 1));
    let count = match (stated, last) {
        (Some(count), None) => count,
        (None, Some(count)) => {
            parts.pop();
            count
        }
        (None, None) => 1,
        (Some(_), Some(_)) => return None,
    };
    let before = parts.len();
    parts.retain(|part| *part != "no_consume");
    let no_consume = parts.len() != before;
    let model = match parts.as_slice() {
        [] => None,
        [model] => Some((*model).to_owned()),
        _ => return None,
    };
    Some(Gres { name, model, count, no_consume, detail })
}

fn is_word(text: &str) -> bool {
    let bad = |c: char| c.is_whitespace() || c.is_control() || "=/()".contains(c);
    !text.is_empty() && !text.contains(bad)
}

fn detail(text: &str) -> Option<Detail> {
    if text == "IDX:N/A" {
        return Some(Detail::Indices(Vec::new()));
    }
    if let Some(list) = text.strip_prefix("IDX:") {
        return indices(list).map(Detail::Indices);
    }
    if let Some(list) = text.strip_prefix("S:") {
        return indices(list).map(Detail::Sockets);
    }
    (!text.is_empty()).then(|| Detail::Other(text.to_owned()))
}

/// Reads a list of device numbers: `0,1,10`, `0-3`. They come sorted, each once, for the list
/// says which devices, not how often. Empty text is a list of none.
///
/// # Errors
/// If the text is no such list (it is none if devices are named by UUID), or too long a one.
pub fn index_list(text: &str) -> Result<Vec<u32>, ParseError> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    indices(text).ok_or_else(|| ParseError::new("device list", text, INDICES))
}

fn indices(text: &str) -> Option<Vec<u32>> {
    let mut indices = Vec::new();
    for item in text.split(',') {
        let (first, last) = item.split_once('-').unwrap_or((item, item));
        let (first, last) = (canonical_u32(first)?, canonical_u32(last)?);
        let size = usize::try_from(last.checked_sub(first)?).ok()?;
        if indices.len().checked_add(size)? >= MAX_INDICES {
            return None;
        }
        indices.extend(first..=last);
    }
    indices.sort_unstable();
    indices.dedup();
    Some(indices)
}

#[cfg(test)]
mod tests {
    use super::{Detail, Gres, MAX_INDICES, index_list, parse};
    use proptest::prelude::*;

    fn gres(name: &str, model: Option<&str>, count: u64, detail: Option<Detail>) -> Gres {
        Gres {
            name: name.to_owned(),
            model: model.map(str::to_owned),
            count,
            no_consume: false,
            detail,
        }
    }

    #[test]
    fn single_resources() {
        let sockets = |list: &[u32]| Some(Detail::Sockets(list.to_vec()));
        let devices = |list: &[u32]| Some(Detail::Indices(list.to_vec()));
        let other = |text: &str| Some(Detail::Other(text.to_owned()));
        let a100 = Some("a100");
        let cases = [
            ("count", "gpu:2", gres("gpu", None, 2, None)),
            ("name alone", "gpu", gres("gpu", None, 1, None)),
            ("type", "gpu:a100:2", gres("gpu", a100, 2, None)),
            ("type alone", "gpu:a100", gres("gpu", a100, 1, None)),
            ("sockets", "gpu:a100:2(S:0-1)", gres("gpu", a100, 2, sockets(&[0, 1]))),
            ("socket list", "gpu:8(S:0,1)", gres("gpu", None, 8, sockets(&[0, 1]))),
            ("in use", "gpu:a100:3(IDX:0,2-3)", gres("gpu", a100, 3, devices(&[0, 2, 3]))),
            ("none in use", "gpu:a100:0(IDX:N/A)", gres("gpu", a100, 0, devices(&[]))),
            ("MIG", "gpu:a100_1g.5gb:7", gres("gpu", Some("a100_1g.5gb"), 7, None)),
            ("MIG alone", "gpu:1g.5gb", gres("gpu", Some("1g.5gb"), 1, None)),
            ("prefix", "gres:gpu:1", gres("gpu", None, 1, None)),
            ("TRES", "gres/gpu:a100=2", gres("gpu", a100, 2, None)),
            ("TRES untyped", "gres/gpu=2", gres("gpu", None, 2, None)),
            ("license", "license:x:1", gres("license", Some("x"), 1, None)),
            ("network", "craynetwork:4", gres("craynetwork", None, 4, None)),
            ("kibi", "bandwidth:lustre:4K", gres("bandwidth", Some("lustre"), 4096, None)),
            ("shards", "shard:a100:3(1/4,2/4)", gres("shard", a100, 3, other("1/4,2/4"))),
        ];
        for (case, text, expected) in cases {
            assert_eq!(parse(text), Ok(vec![expected]), "{case}: {text:?}");
        }
        let bandwidth = parse("bandwidth:lustre:no_consume:4G").unwrap().remove(0);
        assert_eq!(bandwidth.model.as_deref(), Some("lustre"));
        assert_eq!(bandwidth.count, 4 << 30);
        assert!(bandwidth.no_consume);
    }

    #[test]
    fn lists() {
        let list = parse("gpu:a100:2(IDX:0,3),gpu:v100:4(S:0,1),shard:8").unwrap();
        let read: Vec<_> = list.iter().map(|g| (g.model.as_deref(), g.count)).collect();
        assert_eq!(read, [(Some("a100"), 2), (Some("v100"), 4), (None, 8)]);
        for text in ["", "(null)", "N/A"] {
            assert_eq!(parse(text), Ok(vec![]), "{text:?}");
        }
    }

    #[test]
    fn garbage_is_an_error_that_names_it() {
        let cases = [
            ("gpu:2,", ""),
            ("gpu:2,,shard:1", ""),
            ("gpu:2,:3", ":3"),
            ("gpu:", "gpu:"),
            ("gpu:a b:2", "gpu:a b:2"),
            ("gpu:2(S:0-1", "gpu:2(S:0-1"),
            ("gpu:2)", "gpu:2)"),
            ("gpu:2(S:0)(IDX:1)", "gpu:2(S:0)(IDX:1)"),
            ("gpu:2(S:0)x", "gpu:2(S:0)x"),
            ("gpu:2()", "gpu:2()"),
            ("gpu:2(S:x)", "gpu:2(S:x)"),
            ("gpu:2(IDX:3-1)", "gpu:2(IDX:3-1)"),
            ("gres/gpu", "gres/gpu"),
            ("gres/gpu=x", "gres/gpu=x"),
            ("gres/gpu:2=2", "gres/gpu:2=2"),
            ("gpu=2", "gpu=2"),
            ("gpu:a:b:2", "gpu:a:b:2"),
            ("gpu:((2))", "gpu:((2))"),
        ];
        for (text, culprit) in cases {
            assert_eq!(parse(text).unwrap_err().text, culprit, "{text:?}");
        }
    }

    #[test]
    fn device_lists() {
        let cases: [(&str, &[u32]); 6] = [
            ("", &[]),
            ("0", &[0]),
            ("0,1,10", &[0, 1, 10]),
            ("0-3", &[0, 1, 2, 3]),
            ("4,0-1", &[0, 1, 4]),
            ("1,1", &[1]),
        ];
        for (text, expected) in cases {
            assert_eq!(index_list(text).unwrap(), expected, "{text:?}");
        }
        let longest = format!("0-{}", MAX_INDICES - 1);
        assert_eq!(index_list(&longest).unwrap().len(), MAX_INDICES);
        for text in [
            ",",
            "0,",
            "a",
            "0-",
            "-1",
            "3-1",
            "0 1",
            "00",
            "GPU-8f3a",
            "NoDevFiles",
            "0-4096",
            "0-4294967295",
            "0-4000,0-4000",
            "4294967296",
        ] {
            assert_eq!(index_list(text).unwrap_err().text, text, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn written_is_read(
            name in "[a-z]{1,8}", model in "[a-z][a-z0-9_.]{0,8}x", count: u64,
            devices in proptest::collection::btree_set(0u32..64, 1..8),
        ) {
            let devices: Vec<u32> = devices.into_iter().collect();
            let list: Vec<String> = devices.iter().map(u32::to_string).collect();
            let text = format!("{name}:{model}:{count}(IDX:{})", list.join(","));
            let expected = gres(&name, Some(&model), count, Some(Detail::Indices(devices)));
            prop_assert_eq!(parse(&text), Ok(vec![expected]));
        }

        #[test]
        fn never_panics(text in "\\PC*|[a-z0-9:,()=/-]{0,20}") {
            if let Err(error) = parse(&text) {
                prop_assert!(text.contains(&error.text));
            }
            if let Err(error) = index_list(&text) {
                prop_assert_eq!(error.text, text);
            }
        }
    }
}
