//! slurm.conf: the few facts of it that Steward needs.

use super::{ParseError, hostlist};
use crate::id::{ClusterName, NodeName};

/// What one file says. Files that it includes are read by the caller and joined with [`join`].
///
/// [`join`]: SlurmConf::join
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SlurmConf {
    /// ClusterName, in small letters: so Slurm itself uses it.
    pub cluster: Option<ClusterName>,
    /// SlurmdSpoolDir as written; `%h` and `%n` in it stand for host and node.
    pub spool_dir: Option<String>,
    /// Files of Include lines, as written; `%c` in them stands for the cluster.
    pub includes: Vec<String>,
    /// The nodes, in the order of the file.
    pub nodes: Vec<NodeEntry>,
}

/// A node and the host that its slurmd runs on.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct NodeEntry {
    /// NodeName.
    pub name: NodeName,
    /// NodeHostname, where it is given; else the host is named as the node.
    pub host: Option<NodeName>,
}

/// A line of slurm.conf that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct ConfError {
    /// Its number in the file, from 1; of a continued line, the first.
    pub line: usize,
    /// What is wrong.
    pub problem: ParseError,
}

impl SlurmConf {
    /// Adds what another file says. Where both say it, the later one holds, as in Slurm.
    #[must_use]
    pub fn join(mut self, later: SlurmConf) -> SlurmConf {
        self.cluster = later.cluster.or(self.cluster);
        self.spool_dir = later.spool_dir.or(self.spool_dir);
        self.includes.extend(later.includes);
        self.nodes.extend(later.nodes);
        self
    }

    /// The nodes whose slurmd runs on this host; more than one with multiple slurmd.
    #[must_use]
    pub fn nodes_on_host(&self, host: &str) -> Vec<NodeName> {
        let here = |entry: &&NodeEntry| {
            let of_node = entry.host.as_ref().unwrap_or(&entry.name);
            same_host(of_node.as_str(), host)
        };
        let names = self.nodes.iter().filter(here);
        names.map(|entry| entry.name.clone()).collect()
    }

    /// SlurmdSpoolDir on this node, if the file states it.
    #[must_use]
    pub fn spool_dir_of(&self, node: &NodeName, host: &str) -> Option<String> {
        let pattern = self.spool_dir.as_ref()?;
        let host = host.split('.').next().unwrap_or(host);
        Some(pattern.replace("%h", host).replace("%n", node.as_str()))
    }
}

/// A name with a domain and one without are the same host if the first labels agree.
fn same_host(a: &str, b: &str) -> bool {
    let short = |name: &str| name.split('.').next().unwrap_or(name).to_ascii_lowercase();
    let both_have_domains = a.contains('.') && b.contains('.');
    a.eq_ignore_ascii_case(b) || (!both_have_domains && short(a) == short(b))
}

/// Reads one file. Keys that are not needed are passed over unread, so that a new option of
/// Slurm's cannot stop Steward.
///
/// # Errors
/// If a line that is needed cannot be understood.
pub fn parse(text: &str) -> Result<SlurmConf, ConfError> {
    let mut conf = SlurmConf::default();
    for (line, content) in logical_lines(text) {
        read_line(&mut conf, &content).map_err(|problem| ConfError { line, problem })?;
    }
    Ok(conf)
}

/// Joins lines that end in a backslash, after taking off comments; with the number of the first.
fn logical_lines(text: &str) -> Vec<(usize, String)> {
    let mut lines: Vec<(usize, String)> = Vec::new();
    let mut continued = false;
    for (number, line) in (1..).zip(text.lines()) {
        let line = without_comment(line).trim_end();
        let backslashes = line.len() - line.trim_end_matches('\\').len();
        let goes_on = backslashes % 2 == 1;
        let line = if goes_on { line.strip_suffix('\\').unwrap_or(line) } else { line };
        match lines.last_mut() {
            Some((_, first)) if continued => first.push_str(line),
            _ => lines.push((number, line.to_owned())),
        }
        continued = goes_on;
    }
    lines.into_iter().map(|(number, line)| (number, unescaped(&line))).collect()
}

fn without_comment(line: &str) -> &str {
    let mut escaped = false;
    for (at, c) in line.char_indices() {
        if c == '#' && !escaped {
            return line.get(..at).unwrap_or(line);
        }
        escaped = c == '\\' && !escaped;
    }
    line
}

fn unescaped(line: &str) -> String {
    let mut text = String::with_capacity(line.len());
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        let kept = if c == '\\' { chars.next() } else { Some(c) };
        text.extend(kept);
    }
    text
}

fn read_line(conf: &mut SlurmConf, line: &str) -> Result<(), ParseError> {
    let wrong = |expected| ParseError::new("slurm.conf", line, expected);
    let line = line.trim();
    if let Some(file) = include(line) {
        if file.is_empty() || file.contains(char::is_whitespace) {
            return Err(wrong("Include and one file name"));
        }
        conf.includes.push(file.to_owned());
        return Ok(());
    }
    let mut node: Option<String> = None;
    let mut host: Option<String> = None;
    let mut rest = line;
    while let Some((key, value, after)) = pair(rest) {
        match key.to_ascii_lowercase().as_str() {
            "clustername" => {
                conf.cluster = Some(ClusterName::new(&value.to_ascii_lowercase())?);
            }
            "slurmdspooldir" => conf.spool_dir = Some(value.to_owned()),
            "nodename" => node = Some(value.to_owned()),
            "nodehostname" => host = Some(value.to_owned()),
            _ => {}
        }
        rest = after;
    }
    let first_key = line.split(|c: char| !c.is_ascii_alphanumeric()).next();
    let needed = ["clustername", "slurmdspooldir", "nodename"];
    let is_needed =
        first_key.is_some_and(|key| needed.contains(&key.to_ascii_lowercase().as_str()));
    if is_needed && !rest.is_empty() {
        return Err(ParseError::new("slurm.conf", rest, "a pair such as Key=value"));
    }
    match node {
        Some(names) if !names.eq_ignore_ascii_case("DEFAULT") => {
            conf.nodes.extend(entries(&names, host.as_deref())?);
            Ok(())
        }
        _ => Ok(()),
    }
}

fn include(line: &str) -> Option<&str> {
    let (word, rest) = (line.get(..7)?, line.get(7..)?);
    let is_include = word.eq_ignore_ascii_case("include") && rest.starts_with(char::is_whitespace);
    is_include.then(|| rest.trim())
}

/// The first `key=value` of a line, the value perhaps in quotes, and what follows.
fn pair(line: &str) -> Option<(&str, &str, &str)> {
    let (key, after) = line.split_once('=')?;
    // Slurm knows `key+=value` and the like too.
    let key = key.trim().trim_end_matches(['+', '-', '*', '/']).trim_end();
    let is_key = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    if key.is_empty() || !key.chars().all(is_key) {
        return None;
    }
    let after = after.trim_start();
    let (value, after) = match after.strip_prefix('"') {
        Some(quoted) => quoted.split_once('"')?,
        None => {
            let end = after.find(char::is_whitespace).unwrap_or(after.len());
            (after.get(..end)?, after.get(end..)?)
        }
    };
    let separated = after.is_empty() || after.starts_with(char::is_whitespace);
    separated.then(|| (key, value, after.trim_start()))
}

/// Pairs nodes and hosts one by one; a single host is that of all nodes.
fn entries(names: &str, hosts: Option<&str>) -> Result<Vec<NodeEntry>, ParseError> {
    let names = hostlist::expand(names)?;
    let entry = |(name, host)| NodeEntry { name, host };
    let Some(hosts) = hosts else {
        return Ok(names.into_iter().map(|name| entry((name, None))).collect());
    };
    let listed = hostlist::expand(hosts)?;
    let of_each = match listed.as_slice() {
        [one] => vec![one.clone(); names.len()],
        many if many.len() == names.len() => listed,
        _ => {
            let expected = "as many hosts as NodeName has nodes, or one host";
            return Err(ParseError::new("NodeHostname", hosts, expected));
        }
    };
    let pairs = names.into_iter().zip(of_each.into_iter().map(Some));
    Ok(pairs.map(entry).collect())
}

#[cfg(test)]
mod tests;
