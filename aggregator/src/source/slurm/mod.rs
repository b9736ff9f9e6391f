//! Slurm's commands: what is run, and how what it prints becomes types.

pub mod lines;
pub mod marks;
