//! Parses, builds, runs.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use clap::Parser;
use steward_agent::cli::{Cli, Command};
use steward_agent::config::Config;
use steward_agent::{Agent, catalogue, check, once};
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let config = match cli.settings.load() {
        Ok(config) => config,
        Err(error) => return complain(&format!("{error}"), 2),
    };
    let filter = match EnvFilter::try_new(&config.log) {
        Ok(filter) => filter,
        Err(error) => return complain(&format!("log: {}: {error}", config.log), 2),
    };
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false)
        .init();
    match command(cli.command.unwrap_or(Command::Run), config) {
        Ok(code) => code,
        Err(error) => complain(&format!("{error:#}"), 1),
    }
}

fn command(command: Command, config: Config) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    match command {
        Command::Run => {
            let result = runtime.block_on(run(config));
            // A scan that hangs in the kernel is not waited for.
            runtime.shutdown_background();
            result.map(|()| ExitCode::SUCCESS)
        }
        Command::Once { window } => print(&once::run(&config, window.0)?),
        Command::Metrics { json } => print(&catalogue::list(json)?),
        Command::Check { json } => {
            let report = runtime.block_on(check::run(&config));
            print(&if json {
                serde_json::to_string_pretty(&report)? + "\n"
            } else {
                report.to_string()
            })?;
            Ok(ExitCode::from(u8::from(report.has_trouble())))
        }
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
