//! Stands for sacct: `steward-sacct-replay DIRECTORY ARGUMENT…` answers from text that
//! `steward_tests::sacct_text` wrote to the directory.
//!
//! If `SACCT_REPLAY_CALLS` names a file, each answer adds a line to it: what was asked
//! (from, until), bytes.

use std::fs::OpenOptions;
use std::io::{self, ErrorKind, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use steward_tests::sacct_text::{Request, Store, help_format, json, of_format, request, rows};

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let Some(directory) = arguments.next() else {
        eprintln!("usage: steward-sacct-replay DIRECTORY ARGUMENT…");
        return ExitCode::from(2);
    };
    let format = std::env::var("SLURM_TIME_FORMAT").unwrap_or_default();
    let store = Store::new(Path::new(&directory)).sealed(of_format(&format));
    match answer(&store, arguments) {
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
    let (asked, bytes) = match request(arguments, &layout, now).map_err(io::Error::other)? {
        Request::Version => return writeln!(out, "slurm-wlm 22.05.8"),
        Request::HelpFormat => return out.write_all(help_format(&layout).as_bytes()),
        Request::Rows(from, until) => {
            (format!("{from} {until}"), store.serve(from, until, &mut out)?)
        }
        Request::Cancelled(from, until) => {
            (format!("{from} {until} cancelled"), store.cancelled(from, until, &mut out)?)
        }
        Request::Ended(from, until) => {
            (format!("{from} {until} ended"), store.ended(from, until, &mut out)?)
        }
        Request::Jobs(jobs, asked) => {
            let text = rows(&layout, &asked, &store.runs_of(&jobs)?);
            out.write_all(&text)?;
            (format!("{} jobs", jobs.len()), text.len() as u64)
        }
        Request::Json(jobs) => {
            let text = json(&layout, &store.runs_of(&jobs)?).to_string();
            out.write_all(text.as_bytes())?;
            (format!("{} json", jobs.len()), text.len() as u64)
        }
    };
    if let Some(path) = std::env::var_os("SACCT_REPLAY_CALLS") {
        let mut calls = OpenOptions::new().create(true).append(true).open(path)?;
        calls.write_all(format!("{asked} {bytes}\n").as_bytes())?;
    }
    Ok(())
}
