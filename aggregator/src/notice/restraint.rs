//! Whether a user is told now, and if not, why not.

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use steward_common::time::Timestamp;

use super::digest::Candidate;
use crate::config::Notices;
use crate::store::exemptions::Exemption;
use crate::store::notices::Notice;

/// Why a user is not told of a finding, this time.
#[derive(Clone, Debug, PartialEq)]
pub enum Held {
    /// It is no day for mail.
    Day(String),
    /// The user was told not long ago.
    Quiet {
        /// When,
        told: Timestamp,
        /// and from when on he may be told again.
        until: Timestamp,
    },
    /// The user is exempt.
    Exempt {
        /// The exemption,
        id: String,
        /// why there is one,
        reason: String,
        /// and until when.
        until: Timestamp,
    },
    /// Too little of the jobs was measured.
    Coverage {
        /// What was seen,
        found: f64,
        /// and what would do.
        needed: f64,
    },
    /// So many others are told in this run that this one waits for the next.
    Most(usize),
    /// Nobody knows where to write to.
    Address(String),
    /// Another was quicker.
    Raced,
}

impl Held {
    /// Its name for programs.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Held::Day(_) => "day",
            Held::Quiet { .. } => "quiet",
            Held::Exempt { .. } => "exempt",
            Held::Coverage { .. } => "coverage",
            Held::Most(_) => "most",
            Held::Address(_) => "address",
            Held::Raced => "raced",
        }
    }
}

impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let day = |at: &Timestamp| {
            jiff::Timestamp::from_second(at.get())
                .map_or_else(|_| "?".to_owned(), |at| at.strftime("%Y-%m-%d").to_string())
        };
        match self {
            Held::Day(why) => write!(f, "{why}"),
            Held::Quiet { told, until } => {
                write!(f, "told on {}, quiet until {}", day(told), day(until))
            }
            Held::Exempt { reason, until, .. } => {
                write!(f, "exempt until {}: {reason}", day(until))
            }
            Held::Coverage { found, needed } => {
                let percent = |share: &f64| (share * 100.0).round();
                write!(
                    f,
                    "{} % of the jobs' time was measured, {} % are needed",
                    percent(found),
                    percent(needed)
                )
            }
            Held::Most(most) => write!(f, "notices.most is {most}: others come first"),
            Held::Address(why) => write!(f, "{why}"),
            Held::Raced => f.write_str("another run tells of it just now"),
        }
    }
}

/// By how much a run may be early.
const SLACK: Duration = Duration::from_secs(3600);

/// What is known of earlier notices.
#[derive(Debug, Default)]
pub struct History(HashMap<(String, String, String), Vec<Timestamp>>);

impl History {
    /// Of these notices, the oldest first.
    #[must_use]
    pub fn of(notices: &[Notice]) -> History {
        let mut all: HashMap<_, Vec<Timestamp>> = HashMap::new();
        for notice in notices {
            let key = (notice.instance.clone(), notice.user.clone(), notice.cluster.clone());
            all.entry(key).or_default().push(notice.at);
        }
        History(all)
    }

    fn of_candidate(&self, candidate: &Candidate) -> &[Timestamp] {
        let item = &candidate.item;
        let key = (item.instance.clone(), candidate.user.clone(), item.cluster.clone());
        self.0.get(&key).map_or(&[], Vec::as_slice)
    }

    /// How often the user has heard of it without a pause of `memory`.
    #[must_use]
    pub fn before(&self, candidate: &Candidate, memory: Duration, now: Timestamp) -> u32 {
        let memory = i64::try_from(memory.as_secs()).unwrap_or(i64::MAX);
        let mut later = now;
        let mut count = 0;
        for told in self.of_candidate(candidate).iter().rev() {
            if later.get() - told.get() > memory {
                break;
            }
            (later, count) = (*told, count + 1);
        }
        count
    }
}

/// All that decides.
#[derive(Debug)]
pub struct Restraint<'a> {
    /// The settings.
    pub config: &'a Notices,
    /// Another quiet time than that of the settings.
    pub quiet: Option<Duration>,
    /// Why today is no day for mail, if so.
    pub day: Option<String>,
    /// Earlier notices.
    pub history: &'a History,
    /// Exemptions that hold now.
    pub exemptions: &'a [Exemption],
    /// The present.
    pub now: Timestamp,
}

impl Restraint<'_> {
    /// For how long nobody hears of the rule again. Runs of the same hour on two days are not apart to
    /// the second: a little less counts as all.
    #[must_use]
    pub fn quiet(&self, instance: &str) -> Duration {
        let quiet = self.quiet.unwrap_or_else(|| self.config.quiet_of(instance));
        quiet - (quiet / 100).min(SLACK)
    }

    /// Whether something speaks against telling.
    #[must_use]
    pub fn against(&self, candidate: &Candidate) -> Option<Held> {
        let item = &candidate.item;
        let covers = |one: &&Exemption| {
            one.covers(&candidate.user, &item.instance, item.rule.as_str(), &item.cluster)
        };
        if let Some(one) = self.exemptions.iter().find(covers) {
            let (id, reason) = (one.id.clone(), one.reason.clone());
            return Some(Held::Exempt { id, reason, until: one.ends });
        }
        let needed = self.config.coverage;
        if let Some(found) = candidate.coverage.filter(|found| *found < needed) {
            return Some(Held::Coverage { found, needed });
        }
        if let Some(told) = self.history.of_candidate(candidate).last().copied() {
            let quiet = i64::try_from(self.quiet(&item.instance).as_secs()).unwrap_or(i64::MAX);
            let until = Timestamp::new(told.get().saturating_add(quiet));
            if until > self.now {
                return Some(Held::Quiet { told, until });
            }
        }
        self.day.clone().map(Held::Day)
    }
}
