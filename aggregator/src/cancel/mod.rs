//! Cancelling running jobs whose GPUs do nothing, with rails.
