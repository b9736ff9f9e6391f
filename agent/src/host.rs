//! Who this host is to Slurm: the cluster's name and the names of its nodes.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use steward_common::id::{ClusterName, NodeName};
use steward_common::slurm::conf::{self, SlurmConf};

use crate::config::Config;

/// Where Slurm's configuration may be; the last one is that of a configless node.
const CONF_PATHS: [&str; 2] = ["/etc/slurm/slurm.conf", "/run/slurm/conf/slurm.conf"];

/// Where slurmd keeps its state unless slurm.conf says otherwise.
const DEFAULT_SPOOL_DIR: &str = "/var/spool/slurmd";

/// Files that include files that include files: no more than this.
const MOST_INCLUDES: usize = 64;

/// What is known about this host.
#[derive(Clone, Debug, Default)]
pub struct Host {
    /// The cluster, as soon as it is known.
    pub cluster: Option<ClusterName>,
    /// The one node to report, by configuration.
    only: Option<NodeName>,
    /// The nodes of this host, by slurm.conf.
    listed: Vec<NodeName>,
    /// What slurm.conf says.
    conf: SlurmConf,
    /// The short host name.
    hostname: Option<NodeName>,
    /// The slurm.conf that was read.
    pub slurm_conf: Option<PathBuf>,
    /// What was wrong with it.
    pub trouble: Option<String>,
}

impl Host {
    /// Puts together configuration, slurm.conf and host name.
    #[must_use]
    pub fn discover(config: &Config) -> Self {
        let hostname = nix::unistd::gethostname()
            .ok()
            .and_then(|name| name.into_string().ok())
            .and_then(|name| name.split('.').next().map(str::to_owned));
        let mut host = Self {
            cluster: config.cluster.clone(),
            only: config.node.clone(),
            hostname: hostname.as_deref().and_then(|name| name.parse().ok()),
            ..Self::default()
        };
        let path = config
            .paths
            .slurm_conf
            .clone()
            .or_else(|| {
                std::env::var_os("SLURM_CONF").filter(|path| !path.is_empty()).map(PathBuf::from)
            })
            .or_else(|| CONF_PATHS.iter().map(PathBuf::from).find(|path| path.is_file()));
        if let Some(path) = path {
            let (conf, trouble) = read_conf(&path);
            host.listed = hostname.map_or_else(Vec::new, |name| conf.nodes_on_host(&name));
            host.cluster = host.cluster.or_else(|| conf.cluster.clone());
            host.conf = conf;
            host.trouble = trouble;
            host.slurm_conf = Some(path);
        }
        host
    }

    /// The node of a scope: the one it names, else the one this host is.
    #[must_use]
    pub fn node_of(&self, named: Option<&NodeName>) -> Option<NodeName> {
        match (named, &self.only) {
            (Some(named), Some(only)) => (named == only).then(|| named.clone()),
            (Some(named), None) => Some(named.clone()),
            (None, Some(only)) => Some(only.clone()),
            (None, None) => self.own_name(),
        }
    }

    /// Where the slurmd of `node` keeps the sockets of its slurmstepds.
    #[must_use]
    pub fn spool_dir(&self, node: &NodeName) -> PathBuf {
        let hostname = self.hostname.as_ref().map_or("", NodeName::as_str);
        let named = self.conf.spool_dir_of(node, hostname);
        named.map_or_else(|| PathBuf::from(DEFAULT_SPOOL_DIR), PathBuf::from)
    }

    /// All nodes that this host reports, jobs or not; `named` are those that scopes name.
    #[must_use]
    pub fn nodes(&self, named: &BTreeSet<NodeName>) -> BTreeSet<NodeName> {
        if let Some(only) = &self.only {
            return BTreeSet::from([only.clone()]);
        }
        let mut nodes: BTreeSet<NodeName> = named.iter().chain(&self.listed).cloned().collect();
        if nodes.is_empty() {
            nodes.extend(self.hostname.clone());
        }
        nodes
    }

    /// With one slurmd on a host, slurm.conf lists it once; several entries mean that the scope
    /// should have named one, so the host name decides.
    fn own_name(&self) -> Option<NodeName> {
        let listed_as_host = self.listed.iter().find(|node| Some(*node) == self.hostname.as_ref());
        listed_as_host.or(self.listed.first()).or(self.hostname.as_ref()).cloned()
    }
}

/// Reads slurm.conf and what it includes. A part that cannot be read takes nothing from the rest.
fn read_conf(path: &Path) -> (SlurmConf, Option<String>) {
    let mut whole = SlurmConf::default();
    let mut trouble = None;
    let mut waiting = vec![path.to_path_buf()];
    for _ in 0..MOST_INCLUDES {
        let Some(next) = waiting.pop() else { return (whole, trouble) };
        let read = std::fs::read_to_string(&next).map_err(|error| error.to_string());
        match read.and_then(|text| conf::parse(&text).map_err(|error| error.to_string())) {
            Ok(part) => {
                whole = whole.join(part);
                // Slurm takes a relative name from the directory of slurm.conf, %c for the cluster.
                let cluster = whole.cluster.as_ref().map_or("", ClusterName::as_str).to_owned();
                let base = path.parent().unwrap_or(Path::new("/"));
                let includes = std::mem::take(&mut whole.includes);
                waiting.extend(includes.iter().map(|name| base.join(name.replace("%c", &cluster))));
            }
            Err(error) => trouble = Some(format!("{}: {error}", next.display())),
        }
    }
    (whole, Some(format!("{}: more than {MOST_INCLUDES} includes", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str) -> NodeName {
        name.parse().unwrap()
    }

    fn host(only: Option<&str>, listed: &[&str]) -> Host {
        Host {
            only: only.map(node),
            listed: listed.iter().map(|name| node(name)).collect(),
            hostname: Some(node("vm")),
            ..Host::default()
        }
    }

    #[test]
    fn the_scope_names_the_node_before_anything_else() {
        let named = node("n2");
        assert_eq!(host(None, &["n1"]).node_of(Some(&named)), Some(node("n2")));
        assert_eq!(host(None, &["n1"]).node_of(None), Some(node("n1")));
        assert_eq!(host(None, &[]).node_of(None), Some(node("vm")));
        assert_eq!(host(None, &["n1", "vm"]).node_of(None), Some(node("vm")));
    }

    #[test]
    fn a_configured_node_takes_nameless_scopes_and_skips_those_of_others() {
        let host = host(Some("n1"), &["n1", "n2"]);
        assert_eq!(host.node_of(Some(&node("n1"))), Some(node("n1")));
        assert_eq!(host.node_of(Some(&node("n2"))), None);
        assert_eq!(host.node_of(None), Some(node("n1")));
        assert_eq!(host.nodes(&BTreeSet::from([node("n2")])), BTreeSet::from([node("n1")]));
    }

    #[test]
    fn a_host_without_jobs_reports_its_listed_nodes_or_itself() {
        let none = BTreeSet::new();
        assert_eq!(
            host(None, &["n1", "n2"]).nodes(&none),
            BTreeSet::from([node("n1"), node("n2")])
        );
        assert_eq!(host(None, &[]).nodes(&none), BTreeSet::from([node("vm")]));
        let named = BTreeSet::from([node("n3")]);
        assert_eq!(host(None, &[]).nodes(&named), named);
    }

    #[test]
    fn includes_are_followed_a_circle_ends_and_a_missing_one_takes_nothing_away() {
        let dir = tempfile::tempdir().unwrap();
        let conf = dir.path().join("slurm.conf");
        std::fs::write(&conf, "ClusterName=c1\nInclude nodes-%c.conf\n").unwrap();
        let nodes = dir.path().join("nodes-c1.conf");
        std::fs::write(&nodes, "NodeName=n[1-2] NodeHostname=vm\n").unwrap();
        let (read, trouble) = read_conf(&conf);
        assert_eq!((read.cluster.clone(), trouble), (Some("c1".parse().unwrap()), None));
        assert_eq!(read.nodes_on_host("vm"), [node("n1"), node("n2")]);

        std::fs::write(&nodes, "Include slurm.conf\n").unwrap();
        assert!(read_conf(&conf).1.unwrap().contains("includes"));
        std::fs::remove_file(&nodes).unwrap();
        let (read, trouble) = read_conf(&conf);
        assert_eq!(read.cluster, Some("c1".parse().unwrap()));
        assert!(trouble.unwrap().contains("nodes-c1.conf"));
    }
}
