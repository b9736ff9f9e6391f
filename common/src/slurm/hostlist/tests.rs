use std::collections::BTreeSet;

use super::{MAX_NODES, expand, fold};
use crate::id::NodeName;
use proptest::prelude::*;

fn names(text: &str) -> Vec<String> {
    let names = expand(text).unwrap_or_else(|error| panic!("{error}"));
    names.iter().map(ToString::to_string).collect()
}

fn nodes(texts: &[&str]) -> Vec<NodeName> {
    texts.iter().map(|text| NodeName::new(text).unwrap()).collect()
}

#[test]
fn expansions() {
    let cases: [(&str, &str, &[&str]); 17] = [
        ("one", "n1", &["n1"]),
        ("range", "n[1-3]", &["n1", "n2", "n3"]),
        ("two brackets", "r[1-2]n[01-02]", &["r1n01", "r1n02", "r2n01", "r2n02"]),
        ("brackets side by side", "n[1-2][3-4]", &["n13", "n14", "n23", "n24"]),
        ("suffix", "n[1-2]-ib", &["n1-ib", "n2-ib"]),
        ("A15 no padding", "node[9-11]", &["node9", "node10", "node11"]),
        ("A15 padding", "node[009-011]", &["node009", "node010", "node011"]),
        ("padding outgrown", "n[08-10]", &["n08", "n09", "n10"]),
        ("padding outgrown by a digit", "n[98-100]", &["n98", "n99", "n100"]),
        ("padding per range", "n[1,02-03]", &["n1", "n02", "n03"]),
        ("A16 comma", "n1,n2", &["n1", "n2"]),
        ("A17 lists", "node[1-2],gpu[3-4]", &["node1", "node2", "gpu3", "gpu4"]),
        ("underscore", "gpu_a[1-2]", &["gpu_a1", "gpu_a2"]),
        ("bracket alone", "[1-2]", &["1", "2"]),
        ("A19", "None assigned", &[]),
        ("null", "(null)", &[]),
        ("empty", "", &[]),
    ];
    for (case, text, expected) in cases {
        assert_eq!(names(text), expected, "{case}: {text:?}");
    }
    let a14 = ["001", "002", "003", "005", "007", "008", "009"].map(|n| format!("node{n}"));
    assert_eq!(names("node[001-003,005,007-009]"), a14);
}

#[test]
fn garbage() {
    for text in [
        "n[1-",
        "n[1-3",
        "n1]",
        "n[]",
        "n[1,,2]",
        "n[3-1]",
        "n[a-c]",
        "n[1-2x]",
        "n[1-2-3]",
        "n[-1]",
        "n[1-]",
        "n[9-011]",
        "n[0-00]",
        "n[01-002]",
        "n[[1]]",
        "n[1[2]]",
        "]n[",
        "n[1-99999999999999999999]",
    ] {
        assert_eq!(expand(text).unwrap_err().text, text, "{text:?}");
    }
    for (text, culprit) in [
        ("n1,,n2", ""),
        (",n1", ""),
        ("n1,", ""),
        ("n1, n2", " n2"),
        ("a b", "a b"),
        ("n[1-2]/x", "n1/x"),
        ("(null),n1", "(null)"),
    ] {
        assert_eq!(expand(text).unwrap_err().text, culprit, "{text:?}");
    }
}

#[test]
fn size_is_bounded() {
    let largest = format!("n[1-{MAX_NODES}]");
    assert_eq!(expand(&largest).unwrap().len(), MAX_NODES);
    for text in [
        "n[1-4000000000]",
        "n[0-18446744073709551615]",
        "r[1-1000]n[1-1000]",
        "a[1-99999999]b[1-99999999]c[1-99999999]",
        "n[1-200000],m[1-200000]",
        &format!("n0,{largest}"),
    ] {
        let error = expand(text).unwrap_err();
        assert_eq!(error.text, text);
        assert!(error.expected.contains(&MAX_NODES.to_string()));
    }
}

#[test]
fn folds() {
    let cases: [(&str, &[&str], &str); 13] = [
        ("none", &[], ""),
        ("one", &["n1"], "n1"),
        ("no number", &["login"], "login"),
        ("range", &["n3", "n1", "n2"], "n[1-3]"),
        ("gap", &["n1", "n2", "n4"], "n[1-2,4]"),
        ("twice", &["n1", "n1", "n2"], "n[1-2]"),
        ("numeric order", &["n10", "n9", "n2"], "n[2,9-10]"),
        ("padding", &["n09", "n10", "n08"], "n[08-10]"),
        ("paddings do not mix", &["n1", "n02", "n3"], "n[1,02,3]"),
        ("suffix", &["n1-ib0", "n2-ib0"], "n[1-2]-ib0"),
        ("product", &["r1n1", "r1n2", "r2n1", "r2n2"], "r[1-2]n[1-2]"),
        ("no product", &["r1n1", "r2n2"], "r1n1,r2n2"),
        ("shapes", &["n1", "gpu2", "n2", "gpu1"], "gpu[1-2],n[1-2]"),
    ];
    for (case, texts, expected) in cases {
        assert_eq!(fold(&nodes(texts)), expected, "{case}");
    }
}

#[test]
fn a_number_too_long_for_64_bits_is_text() {
    let long = "n184467440737095516160";
    assert_eq!(
        fold(&nodes(&[long, "n184467440737095516161"])),
        format!("{long},n184467440737095516161")
    );
}

#[test]
fn length_is_bounded_before_the_names_are_made() {
    let (text, zeros) = ("x".repeat(1 << 20), "0".repeat(1 << 20));
    for text in [format!("{text}[1-262144]"), format!("n[{zeros}1-{zeros}9][1-20000]")] {
        assert_eq!(expand(&text).unwrap_err().text, text);
    }
}

/// Names that collide in shape and padding often.
fn name() -> impl Strategy<Value = String> {
    "(n|r|gpu-|x_)?([0-9]{1,3}|[1-9]|0[0-9])(n0?[0-9]|-ib[0-2]?|é)?"
}

proptest! {
    #[test]
    fn fold_and_expand_are_inverse(texts in proptest::collection::vec(name(), 0..40)) {
        let given: BTreeSet<NodeName> = texts.iter().map(|t| NodeName::new(t).unwrap()).collect();
        let all: Vec<NodeName> = texts.iter().map(|t| NodeName::new(t).unwrap()).collect();
        let mut again = expand(&fold(&all)).unwrap();
        again.sort();
        prop_assert_eq!(again, given.into_iter().collect::<Vec<_>>());
    }

    #[test]
    fn fold_does_not_depend_on_order(texts in proptest::collection::vec(name(), 0..20)) {
        let mut all: Vec<NodeName> = texts.iter().map(|t| NodeName::new(t).unwrap()).collect();
        let one = fold(&all);
        all.reverse();
        prop_assert_eq!(fold(&all), one);
    }

    #[test]
    fn a_grid_folds_into_one_item(rows in 2u32..12, columns in 2u32..40) {
        let text = format!("r[1-{rows}]n[01-{columns:02}]");
        let names = expand(&text).unwrap();
        prop_assert_eq!(names.len(), (rows * columns) as usize);
        prop_assert_eq!(fold(&names), text);
    }

    #[test]
    fn never_panics(text in "\\PC*|[n0-9,\\[\\]-]{0,16}") {
        if let Ok(names) = expand(&text) {
            prop_assert!(names.len() <= MAX_NODES);
            let mut sorted = names.clone();
            sorted.sort();
            sorted.dedup();
            let mut again = expand(&fold(&names)).unwrap();
            again.sort();
            prop_assert_eq!(again, sorted);
        }
    }
}
