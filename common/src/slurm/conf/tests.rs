use super::{SlurmConf, parse};
use crate::id::NodeName;
use proptest::prelude::*;

fn conf(text: &str) -> SlurmConf {
    parse(text).unwrap_or_else(|error| panic!("{error}"))
}

fn nodes(conf: &SlurmConf) -> Vec<(String, Option<String>)> {
    let read = |name: &NodeName| name.to_string();
    conf.nodes.iter().map(|e| (read(&e.name), e.host.as_ref().map(read))).collect()
}

fn on_host(conf: &SlurmConf, host: &str) -> Vec<String> {
    conf.nodes_on_host(host).iter().map(ToString::to_string).collect()
}

const FILE: &str = r#"
# The cluster. ClusterName=wrong
ClusterName=Alpha        # in small letters everywhere
slurmdspooldir = /var/spool/slurmd/%n
SlurmctldHost=ctl(10.0.0.1)
SlurmctldParameters="a, b"   PluginDir=/usr/lib
Include nodes.conf
include	/etc/slurm/%c.conf
AccountingStorageTRES+=gres/gpu
NodeName=DEFAULT CPUs=64 State=UNKNOWN
NodeName=n[1-2] \
    NodeAddr=10.0.0.[1-2] \
    CPUs=32
NODENAME=v[01-03] NodeHostname=host1 Port=[17001-17003]
NodeName=a[1-2] NodeHostName=box[7-8].site.org CPUs=4
PartitionName=all Nodes=ALL Default=YES
"#;

#[test]
fn a_whole_file() {
    let conf = conf(FILE);
    assert_eq!(conf.cluster.as_ref().map(|c| c.as_str()), Some("alpha"));
    assert_eq!(conf.spool_dir.as_deref(), Some("/var/spool/slurmd/%n"));
    assert_eq!(conf.includes, ["nodes.conf", "/etc/slurm/%c.conf"]);
    let host = |name: &str| Some(name.to_owned());
    let expected = [
        ("n1", None),
        ("n2", None),
        ("v01", host("host1")),
        ("v02", host("host1")),
        ("v03", host("host1")),
        ("a1", host("box7.site.org")),
        ("a2", host("box8.site.org")),
    ];
    assert_eq!(nodes(&conf), expected.map(|(name, host)| (name.to_owned(), host)));
}

#[test]
fn nodes_of_a_host() {
    let conf = conf(FILE);
    let cases: [(&str, &[&str]); 9] = [
        ("n1", &["n1"]),
        ("n1.site.org", &["n1"]),
        ("host1", &["v01", "v02", "v03"]),
        ("HOST1", &["v01", "v02", "v03"]),
        ("box7", &["a1"]),
        ("box7.site.org", &["a1"]),
        ("box7.other.org", &[]),
        ("a1", &[]),
        ("n", &[]),
    ];
    for (host, expected) in cases {
        assert_eq!(on_host(&conf, host), expected, "{host}");
    }
}

#[test]
fn spool_dir_of_a_node() {
    let node = NodeName::new("v01").unwrap();
    let spool = |text: &str| conf(text).spool_dir_of(&node, "host1.site.org");
    assert_eq!(spool(FILE).as_deref(), Some("/var/spool/slurmd/v01"));
    assert_eq!(spool("SlurmdSpoolDir=/a/%h").as_deref(), Some("/a/host1"));
    assert_eq!(spool(""), None);
}

#[test]
fn lines() {
    let cluster = |text: &str| conf(text).cluster.map(|name| name.to_string());
    let cases = [
        ("plain", "ClusterName=a", Some("a")),
        ("quotes", "ClusterName=\"a\"", Some("a")),
        ("blanks", "  ClusterName  =   a  ", Some("a")),
        ("carriage return", "ClusterName=a\r\n", Some("a")),
        ("after another key", "AuthType=auth/munge ClusterName=a", Some("a")),
        ("the last holds", "ClusterName=a\nClusterName=b", Some("b")),
        ("continued", "ClusterName=\\\na", Some("a")),
        ("continued with blanks after", "ClusterName=\\  \na", Some("a")),
        ("comment does not go on", "# x \\\nClusterName=a", Some("a")),
        ("commented", "#ClusterName=a", None),
        ("escaped hash", "ClusterName=a\\#b", Some("a#b")),
        ("escaped backslash does not go on", "X=a\\\\\nClusterName=b", Some("b")),
        ("continued at the end", "ClusterName=a \\", Some("a")),
        ("longer key", "MyClusterName=a", None),
        ("in a value", "Comment=\"x ClusterName=a\"", None),
        ("nothing", "", None),
    ];
    for (case, text, expected) in cases {
        assert_eq!(cluster(text).as_deref(), expected, "{case}: {text:?}");
    }
}

#[test]
fn what_is_not_needed_is_not_judged() {
    let text = "FutureOption {\n what is this\nAnother=\"open\n=\nClusterName=a\nIncluded=1";
    let conf = conf(text);
    assert_eq!(conf.cluster.map(|c| c.to_string()).as_deref(), Some("a"));
    assert!(conf.includes.is_empty());
}

#[test]
fn errors_name_line_and_text() {
    let cases = [
        ("\n\nClusterName=a/b", 3, "a/b"),
        ("ClusterName=", 1, ""),
        ("ClusterName", 1, "ClusterName"),
        ("NodeName=n[1-\n", 1, "n[1-"),
        ("X=1\nNodeName=n1 CPUs", 2, "CPUs"),
        ("X=1 \\\nY=2\nNodeName=n[1-3] NodeHostname=h[1-2]", 3, "h[1-2]"),
        ("NodeName=n[1-2] NodeHostname=h[1", 1, "h[1"),
        ("Include a b", 1, "Include a b"),
    ];
    for (text, line, culprit) in cases {
        let error = parse(text).unwrap_err();
        assert_eq!((error.line, error.problem.text.as_str()), (line, culprit), "{text:?}");
        let shown = error.to_string();
        assert!(shown.starts_with(&format!("line {line}: ")) && shown.contains(culprit), "{shown}");
    }
}

#[test]
fn later_files_hold() {
    let first = conf("ClusterName=a\nSlurmdSpoolDir=/x\nNodeName=n1\nInclude b");
    let joined = first.join(conf("ClusterName=b\nNodeName=n2"));
    assert_eq!(joined.cluster.as_ref().map(|c| c.as_str()), Some("b"));
    assert_eq!(joined.spool_dir.as_deref(), Some("/x"));
    assert_eq!(joined.includes, ["b"]);
    assert_eq!(joined.nodes.len(), 2);
}

proptest! {
    #[test]
    fn every_node_is_on_its_host(count in 1usize..50, shift in 0usize..50) {
        let text = format!("NodeName=n[1-{count}] NodeHostname=h[{}-{}]", 1 + shift, count + shift);
        let conf = parse(&text).unwrap();
        for number in 1..=count {
            let host = format!("h{}", number + shift);
            prop_assert_eq!(on_host(&conf, &host), [format!("n{number}")]);
        }
    }

    #[test]
    fn never_panics(text in any::<String>()) {
        let _ = parse(&text);
    }

    #[test]
    fn never_panics_on_lines(text in "((NodeName|Include|ClusterName|x)?[ =\"\\\\#\n a\\[1-]{0,6}){0,6}") {
        let _ = parse(&text);
    }
}
