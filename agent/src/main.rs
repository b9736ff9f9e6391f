//! Parses, builds, runs.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use clap::Parser;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use steward_agent::cli::{Cli, Command};
use steward_agent::config::Config;
use steward_agent::{Agent, catalogue, check, once, quiet};
use tokio::signal::unix::{SignalKind, signal};
use tracing::level_filters::LevelFilter;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let done = match cli.command.unwrap_or(Command::Run) {
        // The list is the same whatever the configuration.
        Command::Metrics { json } => catalogue::list(json).and_then(|list| print(&list)),
        wanted => match cli.settings.load() {
            Ok(config) => command(wanted, config),
            Err(error) => return complain(&error.to_string(), 2),
        },
    };
    done.unwrap_or_else(|error| complain(&format!("{error:#}"), 1))
}

fn start_log(config: &Config) {
    tracing_subscriber::fmt()
        .with_max_level(config.log.parse().unwrap_or(LevelFilter::INFO))
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false)
        .init();
}

fn command(command: Command, config: Config) -> anyhow::Result<ExitCode> {
    start_log(&config);
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build();
    match command {
        Command::Run => {
            allow_open_files();
            // First: threads inherit it.
            let cores = &config.quiet.cores;
            let cores = (!cores.is_empty()).then_some(cores.as_slice());
            quiet::apply((&config.quiet).into(), cores)?;
            let runtime = runtime()?;
            let result = runtime.block_on(run(config));
            // A scan that hangs in the kernel is not waited for.
            runtime.shutdown_background();
            result.map(|()| ExitCode::SUCCESS)
        }
        Command::Once { window } => print(&once::run(&config, window.0)?),
        Command::Metrics { .. } => Ok(ExitCode::SUCCESS),
        Command::Check { json } => {
            let report = runtime()?.block_on(check::run(&config));
            print(&if json {
                serde_json::to_string_pretty(&report)? + "\n"
            } else {
                report.to_string()
            })?;
            Ok(ExitCode::from(u8::from(report.has_trouble())))
        }
    }
}

/// The usual soft limit of 1,024 is for programs that use select; this one does not.
fn allow_open_files() {
    const WANTED: u64 = 16_384;
    if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE)
        && soft < WANTED
    {
        // With fewer, files are opened anew in each scan: dearer, not wrong.
        let _unless_refused = setrlimit(Resource::RLIMIT_NOFILE, WANTED.min(hard), hard);
    }
}

async fn run(config: Config) -> anyhow::Result<()> {
    let (mut term, mut int) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let shutdown = async {
        tokio::select! { _ = term.recv() => {}, _ = int.recv() => {} }
    };
    Agent::new(config).await?.run(shutdown).await
}

/// A reader that has seen enough, such as `head`, is not an error.
fn print(text: &str) -> anyhow::Result<ExitCode> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(ExitCode::SUCCESS),
    }
}

fn complain(message: &str, code: u8) -> ExitCode {
    // Nothing is left to do if even this cannot be written.
    drop(writeln!(std::io::stderr(), "steward-agent: {message}"));
    ExitCode::from(code)
}
