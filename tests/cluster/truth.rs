//! What Slurm's own commands say, as text, and what follows from it. Imports nothing of Steward: the
//! rules are written down here a second time.

use std::collections::BTreeMap;

use steward_tests::slurm;

/// How much there is, by resource (`cpus`, `memory`, `gpus fake`), class and cause.
pub type Classes = BTreeMap<(String, String, String), u64>;

/// Words of a node's state and the cause that each stands for, in the order of precedence.
const CAUSES: [(&str, &str); 12] = [
    ("drain", "drain"),
    ("down", "down"),
    ("not_responding", "not_responding"),
    ("unknown", "not_responding"),
    ("fail", "fail"),
    ("maintenance", "maint"),
    ("reserved", "reserved"),
    ("powered_down", "power"),
    ("powering_up", "power"),
    ("reboot", "reboot"),
    ("planned", "planned"),
    ("error", "error"),
];

const NODE_COLUMNS: &str =
    "NodeList:|,StateComplete:|,CPUsState:|,Memory:|,AllocMem:|,Gres:|,GresUsed:";

/// The lines of a command about a cluster, without the one that names it.
fn lines(program: &str, cluster: &str, args: &[&str]) -> Vec<String> {
    let text = slurm::run(program, &[&["-M", cluster], args].concat());
    let lines = text.lines().filter(|line| !line.starts_with("CLUSTER:"));
    lines.filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

/// `gpu:fake:2(IDX:0-1)`: type and number.
fn gpus(text: &str) -> Option<(String, u64)> {
    let text = text.split('(').next()?;
    let mut parts = text.split(':');
    let (kind, model, count) = (parts.next()?, parts.next()?, parts.next());
    assert_eq!(kind, "gpu", "{text}");
    // `gpu:0` is none.
    Some((model.to_owned(), count?.parse().unwrap()))
}

/// Every CPU, MiB and GPU of a cluster, by what sinfo says of its nodes.
pub fn classes(cluster: &str) -> Classes {
    let mut nodes: BTreeMap<String, String> = BTreeMap::new();
    for line in lines("sinfo", cluster, &["-h", "-N", "-O", NODE_COLUMNS]) {
        // One line for each partition that the node is in.
        let (name, rest) = line.split_once('|').unwrap();
        nodes.insert(name.to_owned(), rest.to_owned());
    }
    let mut classes = Classes::new();
    for line in nodes.into_values() {
        let [state, cpus, memory, held, gres, used] = columns(&line);
        let [allocated, _, _, total] = slashes(cpus);
        let (memory, held): (u64, u64) = (memory.parse().unwrap(), held.parse().unwrap());
        let words: Vec<&str> = state.split('+').collect();
        let of_state =
            CAUSES.iter().find(|(word, _)| words.contains(word)).map(|(_, cause)| *cause);
        let lacking = if allocated == total {
            Some("no_cpu")
        } else if held == memory {
            Some("no_mem")
        } else {
            None
        };
        let cause = of_state.or(lacking);
        let mut put = |resource: &str, total: u64, allocated: u64| {
            let class = if cause.is_some() { "unusable" } else { "idle" };
            let mut add = |class: &str, cause: &str, amount| {
                let key = (resource.to_owned(), class.to_owned(), cause.to_owned());
                *classes.entry(key).or_default() += amount;
            };
            add("allocated", "", allocated);
            add(class, cause.unwrap_or_default(), total - allocated);
        };
        put("cpus", total, allocated);
        put("memory", memory << 20, held << 20);
        if let Some((model, total)) = gpus(gres) {
            put(&format!("gpus {model}"), total, gpus(used).map_or(0, |(_, count)| count));
        }
    }
    classes.retain(|_, amount| *amount > 0);
    classes
}

fn columns(line: &str) -> [&str; 6] {
    let columns: Vec<&str> = line.split('|').map(str::trim).collect();
    columns.try_into().unwrap_or_else(|found| panic!("{line}: {found:?}"))
}

fn slashes(text: &str) -> [u64; 4] {
    let parts: Vec<u64> = text.split('/').map(|part| part.parse().unwrap()).collect();
    parts.try_into().unwrap_or_else(|found| panic!("{text}: {found:?}"))
}

/// CPUs of a cluster as sinfo counts them: allocated, idle, other, total.
pub fn cpus(cluster: &str) -> [u64; 4] {
    let lines = lines("sinfo", cluster, &["-h", "-o", "%C"]);
    let [line] = &lines[..] else { panic!("{lines:?}") };
    slashes(line)
}

/// Jobs of a cluster, every task of an array counted: by state in small letters, and those that wait
/// by reason.
pub fn queue(cluster: &str) -> (BTreeMap<String, u64>, BTreeMap<String, u64>) {
    let (mut states, mut reasons) = (BTreeMap::new(), BTreeMap::new());
    for line in lines("squeue", cluster, &["-h", "-r", "-a", "-t", "all", "-o", "%T|%r"]) {
        let (state, reason) = line.split_once('|').unwrap();
        *states.entry(state.to_lowercase()).or_default() += 1;
        if state == "PENDING" {
            // `ReqNodeNotAvail, UnavailableNodes:n2`: which nodes those are is no reason of its own.
            let reason = reason.split(':').next().unwrap_or_default().trim();
            *reasons.entry(reason.to_owned()).or_default() += 1;
        }
    }
    (states, reasons)
}
