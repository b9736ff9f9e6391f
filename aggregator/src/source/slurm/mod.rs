//! Slurm's commands: what is run, and how what it prints becomes types.

pub mod associations;
pub mod command;
pub mod coordinators;
pub mod json;
pub mod lines;
pub mod marks;
pub mod pipe;
pub mod sacct;
pub mod seal;
pub mod settings;
mod turns;
