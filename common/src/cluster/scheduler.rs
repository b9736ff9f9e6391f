//! What the scheduler does: the text of `sdiag`.

use std::sync::Arc;

use crate::time::Timestamp;

/// Calls of one sort that slurmctld answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remote {
    /// The message, or the user who called.
    pub name: Arc<str>,
    /// How many.
    pub count: u64,
    /// How long they took together, in microseconds.
    pub microseconds: u64,
}

macro_rules! figures {
    ($($(#[$doc:meta])* $field:ident = $section:ident $label:literal;)*) => {
        /// Figures of slurmctld since [`Scheduler::since`], when it started or was told to count
        /// anew. What sdiag leaves out is `None`.
        #[derive(Debug, Clone, PartialEq, Eq, Default)]
        pub struct Scheduler {
            /// From when it counts.
            pub since: Option<Timestamp>,
            $($(#[$doc])* pub $field: Option<u64>,)*
            /// Calls by message.
            pub by_message: Vec<Remote>,
            /// Calls by user.
            pub by_user: Vec<Remote>,
        }

        impl Scheduler {
            fn place(&mut self, section: Section, label: &str) -> Option<&mut Option<u64>> {
                match (section, label) {
                    $((Section::$section, $label) => Some(&mut self.$field),)*
                    _ => None,
                }
            }
        }
    };
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Section {
    Top,
    Main,
    Backfill,
    ByMessage,
    ByUser,
    Other,
}

figures! {
    /// Threads that answer calls.
    threads = Top "Server thread count";
    /// Messages that wait to be sent.
    agent_queue = Top "Agent queue size";
    /// Messages that wait for slurmdbd.
    dbd_queue = Top "DBD Agent queue size";
    /// Jobs submitted.
    jobs_submitted = Top "Jobs submitted";
    /// Jobs started.
    jobs_started = Top "Jobs started";
    /// Jobs completed.
    jobs_completed = Top "Jobs completed";
    /// Jobs cancelled.
    jobs_cancelled = Top "Jobs canceled";
    /// Jobs failed.
    jobs_failed = Top "Jobs failed";
    /// The last cycle, in microseconds.
    last_cycle = Main "Last cycle";
    /// The longest.
    longest_cycle = Main "Max cycle";
    /// How many.
    cycles = Main "Total cycles";
    /// Their mean, in microseconds.
    mean_cycle = Main "Mean cycle";
    /// How many a minute.
    cycles_per_minute = Main "Cycles per minute";
    /// How many jobs waited at the last.
    queue_length = Main "Last queue length";
    /// Jobs that backfilling started since slurmctld did.
    backfilled_since_start = Backfill "Total backfilled jobs (since last slurm start)";
    /// Jobs that backfilling started since it counts.
    backfilled_since_reset = Backfill "Total backfilled jobs (since last stats cycle start)";
    /// Parts of heterogeneous jobs that it started.
    backfilled_het = Backfill "Total backfilled heterogeneous job components";
    /// Its cycles.
    backfill_cycles = Backfill "Total cycles";
    /// Its last cycle, in microseconds.
    backfill_last_cycle = Backfill "Last cycle";
    /// Its longest.
    backfill_longest_cycle = Backfill "Max cycle";
    /// Their mean.
    backfill_mean_cycle = Backfill "Mean cycle";
    /// Jobs that its last cycle looked at.
    backfill_last_depth = Backfill "Last depth cycle";
    /// Jobs that it looks at, on average.
    backfill_mean_depth = Backfill "Depth Mean";
    /// Jobs that its last cycle had before it.
    backfill_queue_length = Backfill "Last queue length";
}

/// Reads what sdiag prints; what is not known is passed over. `None` if it is no such text.
#[must_use]
pub fn parse(text: &str) -> Option<Scheduler> {
    let mut scheduler = Scheduler::default();
    let mut section = Section::Top;
    for line in text.lines() {
        let bare = line.trim();
        if let Some(rest) = bare.strip_prefix("Data since") {
            scheduler.since = rest.rsplit_once('(').and_then(|(_, second)| {
                Timestamp::from_slurm(second.trim_end_matches(')')).ok().flatten()
            });
        } else if !line.starts_with(char::is_whitespace) && !bare.is_empty() {
            section = heading(bare).unwrap_or(section);
        }
        match section {
            Section::ByMessage => scheduler.by_message.extend(remote(bare)),
            Section::ByUser => scheduler.by_user.extend(remote(bare)),
            Section::Other => {}
            _ => {
                if let Some((label, value)) = bare.rsplit_once(':')
                    && let Some(place) = scheduler.place(section, label.trim())
                {
                    *place = value.trim().parse().ok();
                }
            }
        }
    }
    scheduler.threads.is_some().then_some(scheduler)
}

fn heading(line: &str) -> Option<Section> {
    [
        ("Main schedule statistics", Section::Main),
        ("Main scheduler exit", Section::Other),
        ("Backfilling stats", Section::Backfill),
        ("Backfill exit", Section::Other),
        ("Remote Procedure Call statistics by message type", Section::ByMessage),
        ("Remote Procedure Call statistics by user", Section::ByUser),
        ("Latency", Section::Other),
        ("Pending RPC", Section::Other),
    ]
    .into_iter()
    .find_map(|(start, section)| line.starts_with(start).then_some(section))
}

/// `NAME ( 2009) count:15 ave_time:313 total_time:4698`.
fn remote(line: &str) -> Option<Remote> {
    let (name, rest) = line.split_once('(')?;
    let figure =
        |key: &str| rest.split_whitespace().find_map(|word| word.strip_prefix(key)?.parse().ok());
    Some(Remote {
        name: Arc::from(name.trim()),
        count: figure("count:")?,
        microseconds: figure("total_time:")?,
    })
}
