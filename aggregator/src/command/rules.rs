//! `steward rules`.

use super::{BadInput, Outcome};
use crate::config::{Config, Listed};
use crate::manual;
use crate::output::rules;
use crate::output::screen::Screen;
use crate::shutdown::Shutdown;

/// List the rules that jobs are judged by, or explain one with all its options.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
No configuration is needed: without one, every rule holds as it is shipped.

Examples:
  steward rules                            all rules and the site's own instances, on or off
  steward rules excess-cpu-memory          what it looks at, why, what to do, its options
  steward rules night-cpu                  an instance of steward.toml, with what it changes
  steward rules low-cpu --json             for a program")]
pub struct Args {
    /// A rule, or an instance of one that the configuration names.
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

/// Shows them, or one.
///
/// # Errors
/// If there is no rule of that name.
#[allow(clippy::unused_async, reason = "as every command")]
pub async fn run(args: Args, config: Config, _: Shutdown) -> anyhow::Result<Outcome> {
    Ok(Outcome::done(text(args.name.as_deref(), args.json, &config, Screen::of_stdout())?))
}

fn text(name: Option<&str>, json: bool, config: &Config, screen: Screen) -> anyhow::Result<String> {
    let listed = config.rules.listed()?;
    let Some(name) = name else {
        return Ok(if json { rules::list_json(&listed) } else { rules::list(&listed, screen) });
    };
    let one = find(name, &listed)?;
    Ok(if json { rules::manual_json(one) } else { rules::manual(one, screen) })
}

/// The instance of that name.
///
/// # Errors
/// Names those that are most like it.
pub fn find<'a>(name: &str, listed: &'a [Listed]) -> Result<&'a Listed, BadInput> {
    let names = || listed.iter().map(|one| one.instance.name.as_str());
    listed.iter().find(|one| one.instance.name == name).ok_or_else(|| {
        BadInput(match manual::nearest(name, names()).as_slice() {
            [] => format!("there is no rule {name:?}; 'steward rules' lists them"),
            near => format!("there is no rule {name:?}; did you mean {}?", near.join(" or ")),
        })
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use steward_common::rule::RULES;

    use super::*;

    fn told(name: Option<&str>, json: bool, settings: &str) -> anyhow::Result<String> {
        let config = Config::parse(Path::new("a.toml"), settings)?;
        text(name, json, &config, Screen::file())
    }

    #[test]
    fn every_instance_is_listed_on_or_off() {
        let settings = "[rules.low-cpu]\nenabled = false\n\
                        [rules.night]\nrule = \"low-cpu-efficiency\"\npartitions = \"night\"";
        let all: serde_json::Value =
            serde_json::from_str(&told(None, true, settings).unwrap()).unwrap();
        let rows = all["rules"].as_array().unwrap();
        assert_eq!(rows.len(), RULES.len() + 1);
        let state = |name: &str| {
            let row = rows.iter().find(|row| row["name"] == name).unwrap();
            (row["state"].as_str().unwrap(), row["rule"].as_str().unwrap())
        };
        assert_eq!(state("low-cpu"), ("off", "low-cpu"));
        assert_eq!(state("night"), ("on", "low-cpu-efficiency"));
        let table = told(None, false, settings).unwrap();
        for (id, _) in RULES {
            assert!(table.contains(id), "{id}");
        }
        assert!(table.contains("partitions night"), "{table}");
    }

    #[test]
    fn the_manual_of_every_rule_has_all_of_its_options_and_what_the_site_changed() {
        for (id, make) in RULES {
            let text = told(Some(id), false, "").unwrap();
            for option in make().list() {
                assert!(text.contains(option.name), "{id}: {}", option.name);
            }
            assert!(text.contains(&format!("[rules.{id}]")), "{text}");
            assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
        }
        let settings = "[rules.low-cpu]\nefficiency = 0.5";
        let text = told(Some("low-cpu"), false, settings).unwrap();
        assert!(text.contains("* efficiency = 0.5"), "{text}");
        assert!(text.contains("shipped: 0.8"), "{text}");
        let json: serde_json::Value =
            serde_json::from_str(&told(Some("low-cpu"), true, settings).unwrap()).unwrap();
        let option = &json["options"][0];
        assert_eq!((&option["value"], &option["default"]), (&"0.5".into(), &"0.8".into()));
        assert_eq!(option["changed"], true);
        assert_eq!(json["options"][1]["changed"], false);
    }

    #[test]
    fn an_unknown_name_ends_with_2_and_the_nearest_ones() {
        let error = told(Some("low-cpu-eficiency"), false, "").unwrap_err();
        assert_eq!(crate::command::code(&error), 2);
        assert!(error.to_string().contains("did you mean low-cpu"), "{error}");
    }

    #[test]
    fn a_narrow_screen_cuts_what_is_told_and_never_a_name() {
        let config = Config::default();
        let text = text(None, false, &config, Screen { width: 60, colour: false }).unwrap();
        assert!(text.contains("multinode-cpu-fragmentation  on"), "{text}");
        let rows = text.lines().take(1 + RULES.len());
        assert!(rows.into_iter().all(|line| line.chars().count() <= 60), "{text}");
    }
}
