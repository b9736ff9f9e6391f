//! What could not be taken over.

/// Why a key is told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Job Defense Shield does not know it.
    Unknown,
    /// It is about mails.
    Mail,
    /// It is about how reports look.
    Report,
    /// It is hardware, which Steward takes from Slurm.
    Hardware,
    /// It has no effect in Job Defense Shield either.
    Dead,
    /// Something else takes its place.
    Elsewhere,
    /// Its value cannot stand there.
    Unfit,
    /// It is not there and should be.
    Missing,
    /// It was taken over, and decides a little otherwise.
    Differs,
}

impl Reason {
    /// A word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Reason::Unknown => "unknown",
            Reason::Mail => "mail",
            Reason::Report => "report",
            Reason::Hardware => "hardware",
            Reason::Dead => "dead",
            Reason::Elsewhere => "elsewhere",
            Reason::Unfit => "unfit",
            Reason::Missing => "missing",
            Reason::Differs => "differs",
        }
    }
}

/// A key that is told of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// Its line, from 1.
    pub line: usize,
    /// The instance that it is of; empty for settings of the whole program.
    pub instance: String,
    /// The key; empty if it is about the whole instance.
    pub key: String,
    /// Why.
    pub reason: Reason,
    /// The same in a sentence, with what to do.
    pub why: String,
}
