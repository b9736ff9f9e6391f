//! In which class a part of a node is: allocated, idle, or unusable for a cause.

use std::fmt;

use super::state::{Base, Flag, NodeState};

/// Why something that no job holds cannot be given to one. In the order of precedence: where
/// several hold, the first counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// An administrator took the node out.
    Drain,
    /// The node is down.
    Down,
    /// The node does not answer.
    NotResponding,
    /// The node is expected to fail.
    Fail,
    /// A reservation for maintenance holds the node.
    Maint,
    /// A reservation holds the node.
    Reserved,
    /// The node is powered down, or on its way there or back.
    Power,
    /// The node reboots, or will.
    Reboot,
    /// The scheduler keeps the node for a job that starts soon.
    Planned,
    /// Slurm counts the CPU, or the whole node, as faulty.
    Error,
    /// Free, but no CPU of the node is.
    NoCpu,
    /// Free, but none of the node's memory is.
    NoMem,
}

impl Cause {
    /// Every cause, in the order of precedence.
    pub const ALL: &[Cause] = &[
        Cause::Drain,
        Cause::Down,
        Cause::NotResponding,
        Cause::Fail,
        Cause::Maint,
        Cause::Reserved,
        Cause::Power,
        Cause::Reboot,
        Cause::Planned,
        Cause::Error,
        Cause::NoCpu,
        Cause::NoMem,
    ];

    /// The word for labels.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Cause::Drain => "drain",
            Cause::Down => "down",
            Cause::NotResponding => "not_responding",
            Cause::Fail => "fail",
            Cause::Maint => "maint",
            Cause::Reserved => "reserved",
            Cause::Power => "power",
            Cause::Reboot => "reboot",
            Cause::Planned => "planned",
            Cause::Error => "error",
            Cause::NoCpu => "no_cpu",
            Cause::NoMem => "no_mem",
        }
    }

    /// Whether the cause holds for the whole of a node in this state.
    fn holds(self, state: NodeState) -> bool {
        match self {
            Cause::Drain => state.has_any(&[Flag::Drain, Flag::Undrain]),
            Cause::Down => matches!(state.base, Base::Down | Base::Future),
            // Since slurmctld started it has not heard of a node in state unknown.
            Cause::NotResponding => state.has(Flag::NotResponding) || state.base == Base::Unknown,
            Cause::Fail => state.has(Flag::Fail),
            Cause::Maint => state.has(Flag::Maintenance),
            Cause::Reserved => state.has_any(&[Flag::Reserved, Flag::Blocked]),
            Cause::Power => state.has_any(&[
                Flag::PowerDown,
                Flag::PowerDrain,
                Flag::PowerUp,
                Flag::PoweredDown,
                Flag::PoweringDown,
                Flag::PoweringUp,
            ]),
            Cause::Reboot => state.has_any(&[Flag::RebootIssued, Flag::RebootRequested]),
            Cause::Planned => state.has(Flag::Planned),
            Cause::Error => {
                state.base == Base::Error || state.has_any(&[Flag::InvalidReg, Flag::External])
            }
            Cause::NoCpu | Cause::NoMem => false,
        }
    }

    /// Why nothing of a node in this state can be given to a job; `None` if it can.
    #[must_use]
    pub fn of(state: NodeState) -> Option<Cause> {
        Cause::ALL.iter().copied().find(|cause| cause.holds(state))
    }
}

/// Where a CPU, a byte of memory or a generic resource is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// A job holds it.
    Allocated,
    /// It can be given to a job now.
    Idle,
    /// Neither.
    Unusable(Cause),
}

impl Class {
    /// Every class: allocated, idle, and unusable for each cause.
    pub fn all() -> impl Iterator<Item = Class> {
        [Class::Allocated, Class::Idle]
            .into_iter()
            .chain(Cause::ALL.iter().map(|cause| Class::Unusable(*cause)))
    }

    /// The word for labels.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Class::Allocated => "allocated",
            Class::Idle => "idle",
            Class::Unusable(_) => "unusable",
        }
    }

    /// The word of the cause; empty if there is none.
    #[must_use]
    pub const fn cause(self) -> &'static str {
        match self {
            Class::Unusable(cause) => cause.name(),
            _ => "",
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Class::Unusable(cause) => f.pad(&format!("unusable ({})", cause.name())),
            class => f.pad(class.name()),
        }
    }
}

/// How much is in each class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Split {
    /// What jobs hold.
    pub allocated: u64,
    /// What can be given to jobs.
    pub idle: u64,
    unusable: [u64; 12],
}

impl Split {
    /// How much is in a class.
    #[must_use]
    pub fn get(&self, class: Class) -> u64 {
        match class {
            Class::Allocated => self.allocated,
            Class::Idle => self.idle,
            Class::Unusable(cause) => self.unusable.get(cause as usize).copied().unwrap_or(0),
        }
    }

    /// Puts more into a class.
    pub fn put(&mut self, class: Class, amount: u64) {
        let place = match class {
            Class::Allocated => Some(&mut self.allocated),
            Class::Idle => Some(&mut self.idle),
            Class::Unusable(cause) => self.unusable.get_mut(cause as usize),
        };
        if let Some(place) = place {
            *place = place.saturating_add(amount);
        }
    }

    /// Adds all of another, class by class.
    pub fn add(&mut self, other: &Split) {
        for class in Class::all() {
            self.put(class, other.get(class));
        }
    }

    /// What is unusable, for whatever cause.
    #[must_use]
    pub fn unusable(&self) -> u64 {
        self.unusable.iter().fold(0, |sum, amount| sum.saturating_add(*amount))
    }

    /// All of it.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.allocated.saturating_add(self.idle).saturating_add(self.unusable())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_stand_in_the_order_of_precedence() {
        let cause = |text: &str| Cause::of(NodeState::from_words([text])).map(Cause::name);
        for (text, expected) in [
            ("DOWN+DRAIN+NOT_RESPONDING", Some("drain")),
            ("DOWN+NOT_RESPONDING", Some("down")),
            ("IDLE+NOT_RESPONDING+FAIL", Some("not_responding")),
            ("IDLE+FAIL+MAINTENANCE", Some("fail")),
            ("IDLE+MAINTENANCE+RESERVED+PLANNED", Some("maint")),
            ("IDLE+RESERVED+POWERED_DOWN", Some("reserved")),
            ("IDLE+POWERED_DOWN+REBOOT_REQUESTED", Some("power")),
            ("IDLE+REBOOT_ISSUED+PLANNED", Some("reboot")),
            ("IDLE+PLANNED+INVALID_REG", Some("planned")),
            ("IDLE+INVALID_REG", Some("error")),
            ("UNKNOWN", Some("not_responding")),
            ("FUTURE", Some("down")),
            ("MIXED+COMPLETING+CLOUD+DYNAMIC_NORM", None),
            ("IDLE", None),
        ] {
            assert_eq!(cause(text), expected, "{text}");
        }
        assert!(Cause::ALL.is_sorted());
    }

    #[test]
    fn a_split_adds_up() {
        let mut split = Split::default();
        for (amount, class) in (1u64..).zip(Class::all()) {
            split.put(class, amount);
        }
        assert_eq!(Class::all().count(), 14);
        assert_eq!(split.total(), (1..=14).sum::<u64>());
        let mut twice = split;
        twice.add(&split);
        assert_eq!(twice.total(), 2 * split.total());
        assert_eq!(twice.get(Class::Unusable(Cause::NoMem)), 28);
    }
}
