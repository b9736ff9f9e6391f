//! `steward nodes`.

use steward_common::cluster::Question;

use super::current::{From, How, split};
use super::{BadInput, Outcome};
use crate::config::Config;
use crate::current::{NodeRow, Rows, state_word, state_words};
use crate::jobs::is_like;
use crate::output::nodes::document;
use crate::shutdown::Shutdown;

/// Show what each node has, what of it is free, and why the rest is not.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Every CPU, GPU and byte of memory is allocated, idle, or unusable for a cause: drain, down,
not_responding, fail, maint, reserved, power, reboot, planned, error, no_cpu (free, but no CPU of
the node is) or no_mem (free, but no memory is).

Examples:
  steward nodes                          the nodes of this cluster
  steward nodes --out                    those of which something is unusable
  steward nodes --partition gpu --json   for a program")]
pub struct Args {
    #[command(flatten)]
    from: From,
    /// Only nodes in this partition; may be given several times, as those below.
    #[arg(long, value_name = "NAME")]
    partition: Vec<String>,
    /// Only nodes in this base state or with this flag: idle, mixed, drain, ….
    #[arg(long, short, value_name = "WORD")]
    state: Vec<String>,
    /// Only nodes with such a name; * is any text, ? any character.
    #[arg(long, value_name = "PATTERN")]
    node: Vec<String>,
    /// Only nodes of which something is unusable.
    #[arg(long)]
    out: bool,
    #[command(flatten)]
    how: How,
}

/// Asks and shows.
///
/// # Errors
/// If a state is none of Slurm's, or nobody answers.
pub async fn run(mut args: Args, config: Config, shutdown: Shutdown) -> anyhow::Result<Outcome> {
    for state in &mut args.state {
        *state = word(state)?;
    }
    let rows: Vec<Rows<NodeRow>> = if args.from.service {
        shutdown.or(args.from.of_service("nodes", &config)).await??
    } else {
        let wanted = &[Question::Nodes, Question::Reservations];
        args.from.of_slurm(config, wanted, shutdown, Rows::of_nodes).await?
    };
    let (nodes, failed) = split(rows);
    let nodes: Vec<NodeRow> = nodes.into_iter().filter(|node| args.wants(node)).collect();
    args.how.outcome(&document(&nodes), &failed)
}

fn word(text: &str) -> Result<String, BadInput> {
    let known = state_word(text).ok_or_else(|| {
        let known = state_words();
        BadInput(format!("--state: {text:?} is no state of nodes in Slurm; there are {known}"))
    })?;
    Ok(known.to_owned())
}

impl Args {
    fn wants(&self, node: &NodeRow) -> bool {
        let in_state = |word: &String| node.is(word);
        let named = |pattern: &String| is_like(&node.node, pattern);
        (self.partition.is_empty()
            || node.partitions.iter().any(|own| self.partition.contains(own)))
            && (self.state.is_empty() || self.state.iter().any(in_state))
            && (self.node.is_empty() || self.node.iter().any(named))
            && (!self.out || node.is_out())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_those_of_slurm_in_any_case_and_short() {
        assert_eq!(word("IDLE").unwrap(), "idle");
        assert_eq!(word("alloc").unwrap(), "allocated");
        assert_eq!(word("Drain").unwrap(), "drain");
        let refusal = word("drian").unwrap_err().to_string();
        assert!(refusal.contains("idle") && refusal.contains("not_responding"), "{refusal}");
    }
}
