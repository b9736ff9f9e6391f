//! Directory layouts: real ones made beside Slurm's, and recorded ones.
