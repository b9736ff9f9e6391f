//! The command line: what holds for every command, and how it ends.

use std::path::{Path, PathBuf};

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Args, CommandFactory, FromArgMatches, Parser};

use crate::command::Command;
use crate::config::{Config, ConfigError};

/// Says what the cluster's jobs use of what they hold.
#[derive(Debug, Parser)]
#[command(
    name = "steward",
    version,
    disable_help_subcommand = true,
    after_help = "\
Exit codes: 0 done, 1 refused or failed, 2 bad input, usage or configuration, 3 done in part.
'steward COMMAND --help' explains a command and shows how it is used.

Examples:
  steward now                    what runs at this moment, and what it uses of what it holds
  steward jobs                   my jobs of the last seven days, and how well they used what they held
  steward collect                bring what Slurm's database knows into the archive
  steward analyze                who used what, and how well
  steward report waste           who wastes what; steward report lists all reports
  steward status                 what the archive holds and lacks
  steward doctor                 whether everything is there that Steward needs
  steward config check           which settings hold
  steward rules                  what jobs are judged by; 'steward rules NAME' explains one
  steward backtest --rule NAME   who would have been told by a rule over the last months
  steward bank info ACCOUNT      what an account may use, and what is left
  steward exporter --once        what each cluster has: allocated, idle or unusable, and why
  steward serve                  the service: see deploy/systemd/steward.service
  steward service status         how the service of this machine does"
)]
pub struct Cli {
    /// Settings that hold for every command.
    #[command(flatten)]
    pub settings: Settings,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Settings that win over the configuration file.
#[derive(Debug, Args)]
pub struct Settings {
    /// Configuration file [default: /etc/steward/steward.toml, which may be missing].
    #[arg(long, short, global = true, value_name = "FILE", env = CONFIG, value_parser = path())]
    pub config: Option<PathBuf>,
    /// What to log: error, warn, info, debug, trace or off.
    #[arg(long, global = true, value_name = "LEVEL", env = "STEWARD_LOG")]
    pub log: Option<String>,
}

impl Cli {
    /// What was asked for on the command line; ends the program with help or a complaint if that
    /// cannot be said.
    #[must_use]
    pub fn of_arguments() -> Cli {
        let matches = flowing(Cli::command()).get_matches();
        Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
    }
}

/// The command with sentences of its help that fill whatever width there is: lines are broken in the
/// source for those who read it. What is indented stays as it is.
fn flowing(command: clap::Command) -> clap::Command {
    let command = command.mut_subcommands(flowing);
    let Some(help) = command.get_after_help().map(ToString::to_string) else { return command };
    command.after_help(flowed(&help))
}

fn flowed(text: &str) -> String {
    let is_prose = |line: &str| !line.is_empty() && !line.starts_with(' ') && !line.ends_with(':');
    let mut out = String::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        out += line;
        let goes_on = |next: &&str| is_prose(line) && !next.is_empty() && !next.starts_with(' ');
        match lines.peek() {
            Some(next) if goes_on(next) => out.push(' '),
            Some(_) => out.push('\n'),
            None => {}
        }
    }
    out
}

/// The variable that names the configuration file.
const CONFIG: &str = "STEWARD_CONFIG";

/// A path that may be empty: scripts unset a variable that way, and clap's own parser refuses it.
fn path() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().map(PathBuf::from)
}

impl Settings {
    /// The file that was asked for. An empty variable, `is_unset`, asks for none; an empty flag is a
    /// mistake.
    fn file(&self, is_unset: bool) -> Result<Option<&Path>, ConfigError> {
        match self.config.as_deref() {
            Some(path) if !path.as_os_str().is_empty() => Ok(Some(path)),
            Some(_) if !is_unset => Err(ConfigError::senseless("--config", "must name a file")),
            _ => Ok(None),
        }
    }

    /// The file's settings with those of the command line and the environment on top.
    ///
    /// # Errors
    /// If the file is missing, malformed or senseless.
    pub fn load(&self) -> Result<Config, ConfigError> {
        let is_unset = std::env::var_os(CONFIG).is_some_and(|file| file.is_empty());
        let mut config = Config::load(self.file(is_unset)?)?;
        config.log = self.log.clone().unwrap_or(config.log);
        config.check()?;
        Ok(config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_of_the_help_flow_and_examples_stay() {
        let text =
            "One sentence that is\nbroken here.\n\nExamples:\n  steward a   x\n  steward b   y";
        let flowing =
            "One sentence that is broken here.\n\nExamples:\n  steward a   x\n  steward b   y";
        assert_eq!(flowed(text), flowing);
    }

    #[test]
    fn an_empty_variable_names_no_file_and_an_empty_flag_is_refused() {
        let given = |file: &str| {
            let cli = Cli::try_parse_from(["steward", "--config", file, "now"]).unwrap();
            cli.settings
        };
        assert_eq!(given("").file(true).unwrap(), None);
        assert!(given("").file(false).is_err());
        assert_eq!(given("a.toml").file(true).unwrap(), Some(Path::new("a.toml")));
    }

    #[test]
    fn every_command_explains_itself_and_shows_an_example() {
        let mut cli = Cli::command();
        cli.build();
        cli.clone().debug_assert();
        for command in cli.get_subcommands() {
            let name = command.get_name();
            assert!(command.get_about().is_some(), "{name} does not say what it does");
            let more = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(more.contains("steward "), "{name} shows no example");
        }
    }
}
