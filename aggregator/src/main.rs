//! Parses, builds, runs.

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;
use steward_aggregator::cli::{self, Cli};

fn main() -> ExitCode {
    let cli = Cli::parse();
    match runtime().and_then(|runtime| runtime.block_on(cli::run(cli.command))) {
        // A reader that has seen enough, such as `head`, is not an error.
        Ok(text) => match std::io::stdout().write_all(text.as_bytes()) {
            Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => complain(&error.into()),
            _ => ExitCode::SUCCESS,
        },
        Err(error) => complain(&error),
    }
}

fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?)
}

fn complain(error: &anyhow::Error) -> ExitCode {
    // Nothing is left to do if even this cannot be written.
    drop(writeln!(std::io::stderr(), "steward: {error:#}"));
    ExitCode::FAILURE
}
