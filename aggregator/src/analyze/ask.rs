//! What is asked, of an archive or of the service. Both ends of the Unix socket speak in this type.

use serde::{Deserialize, Serialize};
use steward_common::intern::Names;

use super::groups::GroupSource;
use super::nodes::Sizes;
use super::options::Options;
use super::{Analysis, Setting};
use crate::archive::Archive;
use crate::config::{self, Config};
use crate::output::screen::Screen;

/// What is asked, and where it is shown.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    /// Which days, whose runs, how written.
    pub options: Options,
    /// Columns of the screen.
    pub width: usize,
    /// Whether it has colours.
    pub colour: bool,
}

impl Asked {
    /// For standard output.
    #[must_use]
    pub fn here(options: Options) -> Asked {
        let Screen { width, colour } = Screen::of_stdout();
        Asked { options, width, colour }
    }

    /// The tables, of an archive; `nodes` is what nodes have.
    ///
    /// # Errors
    /// If there is nothing to show.
    pub fn text(self, archive: &Archive, config: &Config, nodes: Sizes) -> anyhow::Result<String> {
        let Asked { options, width, colour } = self;
        let groups = match config.groups.source() {
            config::GroupSource::Account => GroupSource::Accounts,
            config::GroupSource::Config => GroupSource::Config(config.groups.members.clone()),
            config::GroupSource::Unix => GroupSource::Unix,
        };
        let setting = Setting {
            zone: config.zone(),
            now: jiff::Timestamp::now(),
            groups,
            nodes,
            screen: Screen { width, colour },
        };
        archive.consistently(|manifest| {
            let mut analysis = Analysis::new(options.clone(), setting.clone())?;
            let mut names = Names::default();
            let clusters = analysis.filter().clusters;
            let only = if let [one] = clusters.as_slice() { Some(one.as_str()) } else { None };
            let window = analysis.window();
            let detail = analysis.detail();
            let all =
                archive.rows(manifest, window, only, detail, &mut names, &mut |rows, names| {
                    analysis.add(rows, names);
                })?;
            Ok(if all { Some(analysis.text(&names)?) } else { None })
        })
    }
}
