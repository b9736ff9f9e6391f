//! `steward nodes`: what each node has, and what of it can be had.

use super::current::gib;
use super::number::grouped;
use super::sheet::{Cell, Document, Field, Sheet, always, drop, hide, program};
use crate::current::{Held, NodeRow};

/// `4 of 8`, and why the rest cannot be had.
fn held(held: &Held) -> Cell {
    if held.total == 0 {
        return Cell::Missing;
    }
    Cell::text(format!("{} of {}", held.allocated, held.total))
}

/// A text, or nothing.
fn word(text: String) -> Cell {
    if text.is_empty() { Cell::Missing } else { Cell::Text(text) }
}

fn idle(held: &Held) -> Cell {
    if held.total == 0 { Cell::Missing } else { Cell::Count(held.idle) }
}

fn causes(node: &NodeRow) -> String {
    let mut causes: Vec<&str> = Vec::new();
    let gres = node.gres.iter().map(|stock| &stock.held);
    for held in [&node.cpus, &node.memory_bytes].into_iter().chain(gres) {
        for cause in held.unusable.keys() {
            if !causes.contains(&cause.as_str()) {
                causes.push(cause);
            }
        }
    }
    causes.join(", ")
}

const NODES: &[Field<NodeRow>] = &[
    (always("node", "Node"), |node| Cell::text(&node.node)),
    (always("state", "State"), |node| Cell::text(node.whole_state())),
    (drop(3, "partitions", "Partitions"), |node| Cell::text(node.partitions.join(","))),
    (always("cpus", "CPUs"), |node| held(&node.cpus)),
    (always("cpus_idle", "idle"), |node| idle(&node.cpus)),
    (drop(4, "memory_gib", "GiB"), |node| gib(Some(node.memory_bytes.total))),
    (drop(2, "memory_idle_gib", "idle"), |node| gib(Some(node.memory_bytes.idle))),
    (hide(1, "gpus", "GPUs"), |node| held(&node.gpus())),
    (hide(1, "gpus_idle", "idle"), |node| idle(&node.gpus())),
    (hide(5, "gpu_types", "GPU types"), |node| {
        let types = node.gres.iter().filter(|stock| stock.kind == "gpu" && !stock.model.is_empty());
        word(types.map(|stock| stock.model.as_str()).collect::<Vec<_>>().join(","))
    }),
    (drop(6, "load", "Load"), |node| Cell::number(node.load)),
    (hide(2, "unusable", "Unusable"), |node| word(causes(node))),
    (hide(4, "reason", "Reason"), |node| {
        node.reason.as_ref().map_or(Cell::Missing, |reason| Cell::text(&reason.text))
    }),
    (program("reason_author"), |node| {
        let author = node.reason.as_ref().and_then(|reason| reason.author.as_ref());
        author.map_or(Cell::Missing, Cell::text)
    }),
    (program("reason_since"), |node| {
        let since = node.reason.as_ref().and_then(|reason| reason.since);
        since.and_then(|since| u64::try_from(since).ok()).map_or(Cell::Missing, Cell::Count)
    }),
    (program("reservation"), |node| node.reservation.as_ref().map_or(Cell::Missing, Cell::text)),
    (program("cluster"), |node| Cell::text(&node.cluster)),
    (program("cpus_total"), |node| Cell::Count(node.cpus.total)),
    (program("cpus_allocated"), |node| Cell::Count(node.cpus.allocated)),
    (program("gpus_total"), |node| Cell::Count(node.gpus().total)),
    (program("gpus_allocated"), |node| Cell::Count(node.gpus().allocated)),
];

/// Nodes as a document.
#[must_use]
pub fn document(nodes: &[NodeRow]) -> Document {
    let several =
        nodes.windows(2).any(|two| matches!(two, [one, next] if one.cluster != next.cluster));
    let mut fields = NODES.to_vec();
    if several {
        fields.insert(1, (always("cluster", "Cluster"), |node| Cell::text(&node.cluster)));
        fields.retain(|(column, _)| *column != program("cluster"));
    }
    let mut sheet = Sheet::new("nodes", "", &fields, nodes);
    sheet.top = 0;
    Document {
        title: "Nodes".to_owned(),
        headline: headline(nodes),
        facts: Vec::new(),
        sheets: vec![sheet],
    }
}

fn headline(nodes: &[NodeRow]) -> Vec<String> {
    if nodes.is_empty() {
        return vec!["No nodes.".to_owned()];
    }
    let figure = |number: u64| grouped(&number.to_string());
    let sentence = |what: &str, held: &mut dyn Iterator<Item = Held>| {
        let (mut total, mut allocated, mut idle) = (0_u64, 0_u64, 0_u64);
        for one in held {
            total = total.saturating_add(one.total);
            allocated = allocated.saturating_add(one.allocated);
            idle = idle.saturating_add(one.idle);
        }
        let unusable = total.saturating_sub(allocated).saturating_sub(idle);
        (total > 0).then(|| {
            format!(
                "{} {what}: {} allocated, {} idle, {} unusable.",
                figure(total),
                figure(allocated),
                figure(idle),
                figure(unusable)
            )
        })
    };
    let gpu_nodes = nodes.iter().filter(|node| node.gpus().total > 0).count();
    let count = |number: usize| grouped(&number.to_string());
    let with = if gpu_nodes > 0 {
        format!(", {} of them with GPUs", count(gpu_nodes))
    } else {
        String::new()
    };
    let what = if nodes.len() == 1 { "node" } else { "nodes" };
    let mut lines = vec![format!("{} {what}{with}.", count(nodes.len()))];
    lines.extend(sentence("CPUs", &mut nodes.iter().map(|node| node.cpus.clone())));
    lines.extend(sentence("GPUs", &mut nodes.iter().map(NodeRow::gpus)));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::current::StockRow;
    use crate::output::format::{Format, write};
    use crate::output::screen::Screen;

    fn nodes() -> Vec<NodeRow> {
        let held = |total, allocated, cause: &str| {
            let rest = total - allocated;
            let out = !cause.is_empty();
            let unusable = out.then(|| (cause.to_owned(), rest)).into_iter().collect();
            Held { total, allocated, idle: if out { 0 } else { rest }, unusable }
        };
        let gpus = |total, used, cause| StockRow {
            kind: "gpu".to_owned(),
            model: "a100".to_owned(),
            held: held(total, used, cause),
        };
        let node = |name: &str, flags: &[&str], cpus, gres| NodeRow {
            cluster: "c1".to_owned(),
            node: name.to_owned(),
            state: "mixed".to_owned(),
            flags: flags.iter().map(|flag| (*flag).to_owned()).collect(),
            cpus,
            gres,
            ..NodeRow::default()
        };
        vec![
            node("n1", &["drain"], held(8, 2, "drain"), Vec::new()),
            node("n2", &[], held(8, 8, ""), vec![gpus(4, 1, "no_cpu")]),
        ]
    }

    #[test]
    fn what_cannot_be_had_says_why() {
        let text = write(&document(&nodes()), Format::Table, Screen::file(), None);
        for part in [
            "2 nodes, 1 of them with GPUs.",
            "16 CPUs: 10 allocated, 0 idle, 6 unusable.",
            "4 GPUs: 1 allocated, 0 idle, 3 unusable.",
            "mixed+drain",
            "no_cpu",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let narrow =
            write(&document(&nodes()), Format::Table, Screen { width: 50, colour: false }, None);
        assert!(narrow.lines().all(|line| line.chars().count() <= 50), "{narrow}");
        let json: serde_json::Value =
            serde_json::from_str(&write(&document(&nodes()), Format::Json, Screen::file(), None))
                .unwrap();
        assert_eq!(json["nodes"][0]["cpus_total"], 8);
        assert_eq!(json["nodes"][1]["gpus_allocated"], 1);
        assert_eq!(json["nodes"][1]["cluster"], "c1");
    }
}
