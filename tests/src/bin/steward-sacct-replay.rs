//! Stands for sacct: `steward-sacct-replay DIRECTORY ARGUMENT…` answers from text that
//! `steward_tests::sacct_text` wrote to the directory.
//!
//! If `SACCT_REPLAY_CALLS` names a file, each answer adds a line to it: from, until, bytes.

use std::fs::OpenOptions;
use std::io::{self, ErrorKind, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use steward_tests::sacct_text::{Request, Store, help_format, request};

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let Some(directory) = arguments.next() else {
        eprintln!("usage: steward-sacct-replay DIRECTORY ARGUMENT…");
        return ExitCode::from(2);
    };
    match answer(&Store::new(Path::new(&directory)), arguments) {
        Ok(()) => ExitCode::SUCCESS,
        // As sacct, whose reader went away.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("sacct: error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn answer(store: &Store, arguments: impl Iterator<Item = String>) -> io::Result<()> {
    let Some(layout) = store.layout() else {
        return Err(io::Error::other("the directory holds no text, or not all of it"));
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs());
    let mut out = io::stdout().lock();
    match request(arguments, &layout, now).map_err(io::Error::other)? {
        Request::Version => writeln!(out, "slurm-wlm 22.05.8"),
        Request::HelpFormat => out.write_all(help_format(&layout).as_bytes()),
        Request::Rows(from, until) => {
            let bytes = store.serve(from, until, &mut out)?;
            match std::env::var_os("SACCT_REPLAY_CALLS") {
                Some(path) => {
                    let mut calls = OpenOptions::new().create(true).append(true).open(path)?;
                    calls.write_all(format!("{from} {until} {bytes}\n").as_bytes())
                }
                None => Ok(()),
            }
        }
    }
}
