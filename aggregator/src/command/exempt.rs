//! `steward exempt`.

use clap::Subcommand;
use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;
use steward_common::id::ClusterName;
use steward_common::span::Span;
use steward_common::time::Timestamp;

use super::{BadInput, Outcome};
use crate::actor::actor;
use crate::config::Config;
use crate::manual;
use crate::output::exemptions::{self, moment};
use crate::output::format::{self, Format};
use crate::output::plain::visible;
use crate::output::screen::Screen;
use crate::shutdown::Shutdown;
use crate::store::Store;
use crate::store::exemptions::Wanted;

/// Leave a user alone for a time: no notices, no cancelled jobs.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Every change is in the audit log, with who made it ('steward audit').
Exit codes: 0 done, 1 failed or no such exemption, 2 bad input.

Examples:
  steward exempt add alice --reason 'course until Friday' --until 2026-11-20
  steward exempt add bob --rule cancel-zero-gpu-jobs --reason 'debugging, ticket 4711' --for 14d
  steward exempt list
  steward exempt list --all --json
  steward exempt remove 4f1c0a9be2d35786")]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Leave a user alone.
    Add(Add),
    /// List who is left alone.
    List {
        /// Also those that have ended or were removed.
        #[arg(long)]
        all: bool,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// End an exemption now. It stays in the list of all.
    Remove {
        /// Its ID, as the list has it.
        #[arg(value_name = "ID")]
        id: String,
    },
}

#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("end").required(true))]
struct Add {
    /// The user's name.
    #[arg(value_name = "USER")]
    user: String,
    /// Only by this rule: a rule's id or the name of an instance [default: all].
    #[arg(long, value_name = "NAME")]
    rule: Option<String>,
    /// Only on this cluster [default: all].
    #[arg(long, short = 'M', value_name = "NAME")]
    cluster: Option<ClusterName>,
    /// Why; the log keeps it.
    #[arg(long, value_name = "TEXT")]
    reason: String,
    /// The last day of it, or the moment of its end, on the site's clocks.
    #[arg(long, value_name = "DATE", group = "end")]
    until: Option<String>,
    /// How long from now on.
    #[arg(long = "for", value_name = "TIME", group = "end")]
    span: Option<Span>,
}

impl Add {
    fn wanted(self, config: &Config, now: Timestamp) -> anyhow::Result<Wanted> {
        if self.user.trim().is_empty() || self.user.contains(char::is_whitespace) {
            return Err(BadInput("USER: expected the name of a user".to_owned()).into());
        }
        if self.reason.trim().is_empty() {
            return Err(BadInput("--reason: say why".to_owned()).into());
        }
        if let Some(rule) = &self.rule {
            is_rule(rule, config)?;
        }
        let ends = match (&self.until, self.span) {
            (Some(text), _) => end(text, &config.zone())?,
            (None, Some(span)) => now.after(span.0),
            (None, None) => {
                return Err(BadInput("--until or --for: say when it ends".into()).into());
            }
        };
        if ends <= now {
            return Err(BadInput("it would have ended already".to_owned()).into());
        }
        let Add { user, rule, cluster, reason, .. } = self;
        let cluster = cluster.map(|cluster| cluster.to_string());
        Ok(Wanted { user, rule, cluster, reason, ends })
    }
}

/// The end of a day, or a moment.
fn end(text: &str, zone: &TimeZone) -> Result<Timestamp, BadInput> {
    let expected =
        || BadInput(format!("--until: expected 2026-11-20 or 2026-11-20T12:00:00, found {text:?}"));
    let moment: DateTime = match text.parse::<Date>() {
        Ok(day) if text.len() == 10 => {
            day.tomorrow().map_err(|_| expected())?.to_datetime(Time::midnight())
        }
        _ => text.parse().map_err(|_| expected())?,
    };
    let zoned = moment.to_zoned(zone.clone()).map_err(|_| expected())?;
    Ok(Timestamp::new(zoned.timestamp().as_second()))
}

fn is_rule(name: &str, config: &Config) -> anyhow::Result<()> {
    let listed = config.rules.listed()?;
    let names = || {
        let each = listed.iter().flat_map(|one| {
            [one.instance.name.as_str(), one.instance.rule.id().as_str()].into_iter()
        });
        each.collect::<std::collections::BTreeSet<&str>>()
    };
    if names().contains(name) {
        return Ok(());
    }
    let why = match manual::nearest(name, names().into_iter()).as_slice() {
        [] => format!("--rule: there is no rule {name:?}; 'steward rules' lists them"),
        near => format!("--rule: there is no rule {name:?}; did you mean {}?", near.join(" or ")),
    };
    Err(BadInput(why).into())
}

/// Does it.
///
/// # Errors
/// If what was given makes no sense, or the store cannot be used.
pub async fn run(args: Args, config: Config, shutdown: Shutdown) -> anyhow::Result<Outcome> {
    let now = Timestamp::new(jiff::Timestamp::now().as_second());
    let what = match args.what {
        What::Add(add) => Ready::Add(add.wanted(&config, now)?),
        What::List { all, json } => Ready::List { all, json },
        What::Remove { id } => Ready::Remove(id),
    };
    let store = shutdown.or(Store::at(config.store())).await??;
    let done = shutdown.or(act(&store, what, now, &config)).await?;
    store.close().await;
    done
}

/// What was asked, once it is known to make sense.
enum Ready {
    Add(Wanted),
    List { all: bool, json: bool },
    Remove(String),
}

async fn act(
    store: &Store,
    what: Ready,
    now: Timestamp,
    config: &Config,
) -> anyhow::Result<Outcome> {
    match what {
        Ready::Add(wanted) => {
            let made = store.exempt(wanted, &actor(), now).await?;
            let ends = moment(made.ends.get().saturating_mul(1000), &config.zone());
            let (id, user) = (&made.id, visible(&made.user));
            Ok(Outcome::done(format!("{id}: {user} is left alone until {ends}.\n")))
        }
        Ready::List { all, json } => {
            let list =
                if all { store.exemptions().await? } else { store.exemptions_at(now).await? };
            let document = exemptions::exemptions(list, now, &config.zone());
            let format = if json { Format::Json } else { Format::Table };
            Ok(Outcome::done(format::write(&document, format, Screen::of_stdout(), Some(0))))
        }
        Ready::Remove(id) => {
            if store.remove_exemption(&id, &actor(), now).await? {
                return Ok(Outcome::done(format!("{} has ended.\n", visible(&id))));
            }
            let id = visible(&id);
            Ok(Outcome::failed(format!(
                "There is no exemption {id} that could be removed; 'steward exempt list' has them.\n"
            )))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_meant_to_its_end_on_the_sites_clocks() {
        let zone = TimeZone::get("Europe/Berlin").unwrap();
        let at = |text: &str| end(text, &zone).map(|moment| moment.get()).map_err(|e| e.0);
        let is = |text: &str| text.parse::<jiff::Timestamp>().unwrap().as_second();
        assert_eq!(at("2026-11-20"), Ok(is("2026-11-20T23:00:00Z")));
        assert_eq!(at("2026-11-20T12:00:00"), Ok(is("2026-11-20T11:00:00Z")));
        assert!(at("tomorrow").unwrap_err().contains("expected"));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let add = |user: &str, rule: Option<&str>, reason: &str, until: &str| Add {
            user: user.to_owned(),
            rule: rule.map(str::to_owned),
            cluster: None,
            reason: reason.to_owned(),
            until: Some(until.to_owned()),
            span: None,
        };
        let (config, now) = (Config::default(), Timestamp::new(1_794_800_000));
        let far = "2030-01-01";
        for (bad, why) in [
            (add(" ", None, "x", far), "USER"),
            (add("a", None, " ", far), "--reason"),
            (add("a", Some("low-cpx"), "x", far), "did you mean low-cpu"),
            (add("a", None, "x", "2020-01-01"), "already"),
        ] {
            let error = bad.wanted(&config, now).unwrap_err();
            assert_eq!(super::super::code(&error), 2, "{error}");
            assert!(error.to_string().contains(why), "{error}");
        }
        add("a", Some("low-cpu"), "x", far).wanted(&config, now).unwrap();
    }
}
