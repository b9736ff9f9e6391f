//! States of nodes: a base state, and apart from it any number of flags.

use std::fmt;

macro_rules! words {
    ($(#[$top:meta])* $name:ident; $($(#[$doc:meta])* $variant:ident = $word:literal $(| $alias:literal)*;)*) => {
        $(#[$top])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$doc])* $variant,)*
        }

        impl $name {
            /// Every one, in the order of the words.
            pub const ALL: &[$name] = &[$($name::$variant),*];

            /// Slurm's word, in small letters.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $($name::$variant => $word,)*
                }
            }

            /// By Slurm's word, in letters of any size; `None` if it is none that is known.
            #[must_use]
            pub fn from_word(text: &str) -> Option<$name> {
                $(if text.eq_ignore_ascii_case($word) $(|| text.eq_ignore_ascii_case($alias))* {
                    return Some($name::$variant);
                })*
                None
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.name())
            }
        }
    };
}

words! {
    /// What a node is, flags aside.
    Base;
    /// All of its CPUs are given to jobs.
    Allocated = "allocated" | "alloc";
    /// Cannot be used.
    Down = "down";
    /// Slurm says that something is wrong with it.
    Error = "error" | "err";
    /// Not there yet.
    Future = "future" | "futr";
    /// Runs nothing.
    Idle = "idle";
    /// Some of its CPUs are given to jobs.
    Mixed = "mixed" | "mix";
    /// Has not registered since slurmctld started, or a word that this program does not know.
    Unknown = "unknown" | "unk";
}

words! {
    /// What may be said of a node beside its base state.
    Flag;
    /// Kept free by a job that has its part of the network for itself.
    Blocked = "blocked";
    /// Made when it is needed.
    Cloud = "cloud";
    /// A job on it is being cleaned up.
    Completing = "completing" | "comp";
    /// Takes no new jobs by order of an administrator.
    Drain = "drain";
    /// Made from a future node.
    DynamicFuture = "dynamic_future";
    /// Came by itself.
    DynamicNorm = "dynamic_norm" | "dynamic";
    /// Not managed by this slurmctld.
    External = "external";
    /// Expected to fail; takes no new jobs.
    Fail = "fail";
    /// Registered with less than it is configured with.
    InvalidReg = "invalid_reg" | "inval" | "invalid";
    /// In a reservation for maintenance.
    Maintenance = "maintenance" | "maint";
    /// Does not answer.
    NotResponding = "not_responding" | "no_respond";
    /// Network counters are in use.
    Perfctrs = "perfctrs" | "npc";
    /// Kept for a job of high priority that starts soon.
    Planned = "planned" | "plnd";
    /// Will be powered down when its jobs are over.
    PowerDown = "power_down" | "pow_dn";
    /// Drained, then powered down.
    PowerDrain = "power_drain";
    /// Will be powered up.
    PowerUp = "power_up" | "pow_up";
    /// Is off.
    PoweredDown = "powered_down";
    /// Is being powered down.
    PoweringDown = "powering_down";
    /// Is being powered up.
    PoweringUp = "powering_up";
    /// Its reboot was called off.
    RebootCanceled = "reboot_canceled";
    /// Is rebooting.
    RebootIssued = "reboot_issued";
    /// Will reboot when its jobs are over.
    RebootRequested = "reboot_requested" | "reboot";
    /// In a reservation.
    Reserved = "reserved" | "resv";
    /// Is being brought back.
    Resume = "resume";
    /// Its drain is being lifted.
    Undrain = "undrain";
}

/// The state of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct NodeState {
    /// Base state.
    pub base: Base,
    flags: u32,
}

impl NodeState {
    /// A base state without flags.
    #[must_use]
    pub const fn new(base: Base) -> NodeState {
        NodeState { base, flags: 0 }
    }

    /// The same with one flag more.
    #[must_use]
    pub const fn with(mut self, flag: Flag) -> NodeState {
        self.flags |= 1 << flag as u32;
        self
    }

    /// Whether the flag is set.
    #[must_use]
    pub const fn has(self, flag: Flag) -> bool {
        self.flags & (1 << flag as u32) != 0
    }

    /// Whether one of them is set.
    #[must_use]
    pub fn has_any(self, flags: &[Flag]) -> bool {
        flags.iter().any(|flag| self.has(*flag))
    }

    /// The flags that are set.
    pub fn flags(self) -> impl Iterator<Item = Flag> {
        Flag::ALL.iter().copied().filter(move |flag| self.has(*flag))
    }

    /// Reads words as JSON lists them (`["IDLE", "DRAIN"]`) or text joins them
    /// (`IDLE+DRAIN+NOT_RESPONDING`, `mixed*`, `drained`, `idle~`). Never fails: a word that is
    /// not known is passed over if it comes as a flag, and is [`Base::Unknown`] if there is no
    /// base state beside it.
    #[must_use]
    pub fn from_words<'a>(words: impl IntoIterator<Item = &'a str>) -> NodeState {
        let mut base = None;
        let mut state = NodeState::new(Base::Unknown);
        for word in words.into_iter().flat_map(|word| word.split('+')) {
            let stem = word.trim().trim_end_matches(|c| mark(c).is_some());
            for flag in word.trim().chars().rev().map_while(mark) {
                state = state.with(flag);
            }
            // What sinfo makes one word of.
            let (stem, flag) = match stem.to_ascii_lowercase().as_str() {
                "drained" => (Some("idle"), Some(Flag::Drain)),
                "draining" | "drng" => (Some("mixed"), Some(Flag::Drain)),
                "failing" | "failg" => (Some("mixed"), Some(Flag::Fail)),
                _ => (Some(stem), None),
            };
            state = flag.map_or(state, |flag| state.with(flag));
            let Some(stem) = stem else { continue };
            if let Some(found) = Base::from_word(stem) {
                base = base.or(Some(found));
            } else if let Some(flag) = Flag::from_word(stem) {
                state = state.with(flag);
            }
        }
        // sinfo shows `maint`, `reserved`, `planned` alone only for nodes without jobs.
        let alone = if state.flags == 0 { Base::Unknown } else { Base::Idle };
        NodeState { base: base.unwrap_or(alone), ..state }
    }

    /// The word that sinfo shows for this state, without its marks: one for everything.
    #[must_use]
    pub fn sinfo_word(self) -> &'static str {
        let busy = matches!(self.base, Base::Allocated | Base::Mixed) || self.has(Flag::Completing);
        let rebooting = self.has_any(&[Flag::RebootIssued, Flag::RebootRequested]);
        let holds_jobs = matches!(self.base, Base::Allocated | Base::Mixed);
        if self.has(Flag::Maintenance)
            && !self.has(Flag::Drain)
            && !holds_jobs
            && self.base != Base::Down
        {
            return "maint";
        }
        if rebooting && !holds_jobs && !self.has(Flag::Drain) && self.base != Base::Down {
            return "reboot";
        }
        if self.has(Flag::Drain) {
            return if busy { "draining" } else { "drained" };
        }
        if self.has(Flag::Fail) {
            return if busy { "failing" } else { "fail" };
        }
        match self.base {
            Base::Down => "down",
            Base::Error => "error",
            Base::Future => "future",
            Base::Unknown => "unknown",
            _ if self.has(Flag::InvalidReg) => "inval",
            Base::Allocated => "allocated",
            _ if self.has(Flag::Completing) => "completing",
            Base::Mixed => "mixed",
            Base::Idle if self.has(Flag::Reserved) => "reserved",
            Base::Idle if self.has(Flag::Planned) => "planned",
            Base::Idle if self.has(Flag::Blocked) => "blocked",
            Base::Idle => "idle",
        }
    }
}

/// The characters that sinfo puts behind a state.
fn mark(c: char) -> Option<Flag> {
    match c {
        '*' => Some(Flag::NotResponding),
        '~' => Some(Flag::PoweredDown),
        '#' => Some(Flag::PoweringUp),
        '%' => Some(Flag::PoweringDown),
        '!' => Some(Flag::PowerDown),
        '$' => Some(Flag::Maintenance),
        '@' => Some(Flag::RebootRequested),
        '^' => Some(Flag::RebootIssued),
        '-' => Some(Flag::Planned),
        _ => None,
    }
}

/// As scontrol writes it: `IDLE+DRAIN`.
impl fmt::Display for NodeState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = self.base.name().to_ascii_uppercase();
        for flag in self.flags() {
            text.push('+');
            text.push_str(&flag.name().to_ascii_uppercase());
        }
        f.pad(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Base, Vec<Flag>) {
        let state = NodeState::from_words([text]);
        (state.base, state.flags().collect())
    }

    #[test]
    fn e7_a_compound_state_keeps_every_flag() {
        let (base, flags) = read("IDLE+DYNAMIC_NORM+MAINTENANCE+RESERVED+PLANNED");
        assert_eq!(base, Base::Idle);
        assert_eq!(flags, [Flag::DynamicNorm, Flag::Maintenance, Flag::Planned, Flag::Reserved]);
    }

    #[test]
    fn words_of_scontrol_sinfo_and_json() {
        assert_eq!(read("MIXED"), (Base::Mixed, vec![]));
        assert_eq!(read("IDLE*+DRAIN"), (Base::Idle, vec![Flag::Drain, Flag::NotResponding]));
        assert_eq!(read("drained*"), (Base::Idle, vec![Flag::Drain, Flag::NotResponding]));
        assert_eq!(read("draining"), (Base::Mixed, vec![Flag::Drain]));
        assert_eq!(read("idle~"), (Base::Idle, vec![Flag::PoweredDown]));
        assert_eq!(read("mixed-"), (Base::Mixed, vec![Flag::Planned]));
        assert_eq!(read("maint"), (Base::Idle, vec![Flag::Maintenance]));
        assert_eq!(read("NEWSTATE"), (Base::Unknown, vec![]));
        assert_eq!(read("IDLE+NEWFLAG"), (Base::Idle, vec![]));
        let json = NodeState::from_words(["DOWN", "DRAIN", "NOT_RESPONDING"]);
        assert_eq!(json.to_string(), "DOWN+DRAIN+NOT_RESPONDING");
        assert_eq!(NodeState::from_words([json.to_string().as_str()]), json);
    }

    #[test]
    fn the_word_of_sinfo() {
        for (text, word) in [
            ("IDLE", "idle"),
            ("IDLE+DRAIN", "drained"),
            ("MIXED+DRAIN", "draining"),
            ("IDLE+COMPLETING+DRAIN", "draining"),
            ("IDLE+MAINTENANCE+RESERVED", "maint"),
            ("MIXED+MAINTENANCE+RESERVED", "mixed"),
            ("IDLE+RESERVED", "reserved"),
            ("IDLE+PLANNED", "planned"),
            ("IDLE+COMPLETING", "completing"),
            ("ALLOCATED+COMPLETING", "allocated"),
            ("DOWN+NOT_RESPONDING", "down"),
            ("DOWN+DRAIN", "drained"),
            ("IDLE+FAIL", "fail"),
            ("ALLOCATED+FAIL", "failing"),
            ("IDLE+REBOOT_REQUESTED", "reboot"),
            ("UNKNOWN", "unknown"),
        ] {
            assert_eq!(NodeState::from_words([text]).sinfo_word(), word, "{text}");
        }
    }

    #[test]
    fn every_flag_fits() {
        assert!(Flag::ALL.len() <= 32);
        for flag in Flag::ALL {
            assert!(NodeState::new(Base::Idle).with(*flag).has(*flag));
            assert_eq!(Flag::from_word(flag.name()), Some(*flag));
        }
    }
}
