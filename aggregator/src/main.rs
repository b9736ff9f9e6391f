//! Parses, builds, runs.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use steward_aggregator::cli::Cli;
use steward_aggregator::command::{self, Command, Interrupted, Outcome};
use steward_aggregator::config::Config;
use steward_aggregator::output::plain::visible;
use steward_aggregator::shutdown;
use tokio::signal::unix::{SignalKind, signal};
use tracing::level_filters::LevelFilter;

/// A file of the archive is tens of columns that are built, written and thrown away again and again;
/// the system's allocator hands each back to the kernel, which costs a third of the time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The usual soft limit of 1,024 is less than the days of three years, each a file.
fn allow_open_files() {
    if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE)
        && soft < hard
    {
        // With fewer, a long archive is refused with a word that says so.
        let _unless_refused = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
}

/// The allocator asks for huge pages, of which it touches a little each: half of the memory that the
/// kernel then counts is never used, and no time is won.
fn use_small_pages() {
    let _unless_refused = rustix::thread::disable_transparent_huge_pages(true);
}

fn main() -> ExitCode {
    use_small_pages();
    allow_open_files();
    let mut cli = Cli::of_arguments();
    let settings = cli.settings.load().or_else(|error| cli.command.without_settings(error));
    let config = match settings {
        Ok(config) => config,
        Err(error) => return complain(&error.into()),
    };
    start_log(&config);
    if let Some(trouble) = config.zone_trouble() {
        tracing::warn!("{trouble}");
    }
    match run(cli.command, config).and_then(|outcome| print(&outcome)) {
        Ok(code) => code,
        Err(error) => complain(&error),
    }
}

fn start_log(config: &Config) {
    tracing_subscriber::fmt()
        .with_max_level(config.log.parse().unwrap_or(LevelFilter::INFO))
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false)
        .init();
}

fn run(command: Command, config: Config) -> anyhow::Result<Outcome> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let result = runtime.block_on(async {
        let (mut term, mut int) =
            (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        let (stopper, shutdown) = shutdown::channel();
        // The first signal asks the command to clean up and end; the second does not ask.
        let signals = async move {
            for asked in [false, true] {
                tokio::select! { _ = term.recv() => {}, _ = int.recv() => {} }
                if !asked {
                    stopper.stop();
                }
            }
        };
        tokio::select! {
            result = command.run(config, shutdown) => result,
            () = signals => Err(Interrupted.into()),
        }
    });
    // What hangs in the system's directory of users or in a file system is not waited for.
    runtime.shutdown_timeout(Duration::from_secs(1));
    result
}

/// A reader that has seen enough, such as `head`, is not an error.
fn print(outcome: &Outcome) -> anyhow::Result<ExitCode> {
    match std::io::stdout().write_all(outcome.text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(ExitCode::from(outcome.end.code())),
    }
}

fn complain(error: &anyhow::Error) -> ExitCode {
    // Nothing is left to do if even this cannot be written.
    let message = command::message(error);
    let lines: Vec<String> = message.lines().map(visible).collect();
    drop(writeln!(
        std::io::stderr(),
        "steward: {}",
        lines.join(
            "
"
        )
    ));
    ExitCode::from(command::code(error))
}
