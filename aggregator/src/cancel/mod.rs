//! Cancelling running jobs whose GPUs do nothing, with rails.
//!
//! ```text
//! evaluate ─ [`case`] ─> cases ─┐
//! store (what was done before) ─┴─ [`plan`] with [`timing`] and [`rails`] ─> Plan ─ [`engine`] ─> notes, scancel, audit log
//! ```
//!
//! The rule says how long a job has been idle; the store remembers what was done about it. A warning that was missed is
//! given late, and the time that the rule's options leave between it and the next step begins there. What cannot be
//! taken back is written down before it is done, and Slurm is asked before anybody says "cancelled".

pub mod case;
pub mod engine;
pub mod mailed;
pub mod note;
pub mod plan;
pub mod rails;
pub mod run;
pub mod slurm;
pub mod timing;

pub use note::{Kind, Messenger, Note, Told};
