//! The kernel's counters of a job, carried over directories that are removed or made anew.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::kernel::count::{Count, Counts};

/// One counter that goes on when its directory is made anew.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
struct Counter {
    base: u64,
    last: u64,
}

/// The counters of a job's own directory. All of it is kept over a restart of the agent.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct CountLedger(BTreeMap<Count, Counter>);

impl CountLedger {
    /// Takes what the kernel says now; `remade` says that the directory is not the one of the
    /// scan before.
    pub fn observe(&mut self, now: &Counts, remade: bool) -> Counts {
        if remade {
            for counter in self.0.values_mut() {
                counter.base = counter.base.saturating_add(counter.last);
                counter.last = 0;
            }
        }
        let mut total = |(count, raw): (&Count, &u64)| {
            let counter = self.0.entry(*count).or_default();
            // A device that is taken out, or rounding, may lower a sum: it is held.
            counter.last = counter.last.max(*raw);
            (*count, counter.base.saturating_add(counter.last))
        };
        now.iter().map(&mut total).collect()
    }
}

/// Counters that stand in the directories of steps and tasks and go with them, added up: on v1 a
/// kill is counted where the killed process was, a hit where the limit was.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct PartLedger {
    parts: HashMap<PathBuf, Counts>,
    total: Counts,
}

impl PartLedger {
    /// Takes what each directory says now; gives the totals of all that ever were.
    pub fn observe(&mut self, now: Vec<(PathBuf, Counts)>) -> Counts {
        for (path, counts) in &now {
            let before = self.parts.get(path);
            for (count, raw) in counts {
                let seen = before.and_then(|before| before.get(count)).copied().unwrap_or(0);
                // Less than before: the directory was made anew in between.
                let grown = raw.checked_sub(seen).unwrap_or(*raw);
                let total = self.total.entry(*count).or_insert(0);
                *total = total.saturating_add(grown);
            }
        }
        // One that could not be read stands as it was.
        let mut before = std::mem::take(&mut self.parts);
        self.parts = now
            .into_iter()
            .map(|(path, counts)| {
                let mut kept = before.remove(&path).unwrap_or_default();
                kept.extend(counts);
                (path, kept)
            })
            .collect();
        self.total.clone()
    }

    /// The totals as of the last look.
    #[must_use]
    pub const fn total(&self) -> &Counts {
        &self.total
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn kills(count: u64) -> Counts {
        Counts::from([(Count::MemoryOomKills, count)])
    }

    #[test]
    fn a_directory_made_anew_goes_on_and_an_unread_counter_is_absent() {
        let mut ledger = CountLedger::default();
        assert_eq!(ledger.observe(&kills(3), false), kills(3));
        assert_eq!(ledger.observe(&kills(1), true), kills(4));
        assert_eq!(ledger.observe(&Counts::new(), false), Counts::new());
        // Unread when it was made anew: what it had counted stands all the same.
        assert_eq!(ledger.observe(&Counts::new(), true), Counts::new());
        assert_eq!(ledger.observe(&kills(2), false), kills(6));
    }

    #[test]
    fn steps_that_are_gone_stay_in_the_total() {
        let part = |name: &str, count| (PathBuf::from(name), kills(count));
        let mut ledger = PartLedger::default();
        assert_eq!(ledger.observe(vec![part("step_0", 1), part("step_1", 0)]), kills(1));
        assert_eq!(ledger.observe(vec![part("step_1", 1)]), kills(2));
        assert_eq!(ledger.observe(vec![part("step_1", 1)]), kills(2));
        assert_eq!(ledger.observe(vec![part("step_0", 1), part("step_1", 1)]), kills(3));
        // Unreadable once, it is not counted anew.
        let unread = (PathBuf::from("step_1"), Counts::new());
        assert_eq!(ledger.observe(vec![unread, part("step_0", 1)]), kills(3));
        assert_eq!(ledger.observe(vec![part("step_0", 1), part("step_1", 1)]), kills(3));
        assert_eq!(ledger.observe(vec![]), kills(3));
        assert_eq!(*ledger.total(), kills(3));
    }

    proptest! {
        #[test]
        fn no_total_goes_back(values in prop::collection::vec((any::<u64>(), any::<bool>()), 0..40)) {
            let (mut ledger, mut parts) = (CountLedger::default(), PartLedger::default());
            let (mut last, mut last_parts) = (0, 0);
            for (raw, remade) in values {
                let now = ledger.observe(&kills(raw), remade)[&Count::MemoryOomKills];
                prop_assert!(now >= last);
                let list = if remade { vec![] } else { vec![(PathBuf::from("a"), kills(raw))] };
                let total = parts.observe(list).get(&Count::MemoryOomKills).copied().unwrap_or(0);
                prop_assert!(total >= last_parts);
                (last, last_parts) = (now, total);
            }
        }
    }
}
