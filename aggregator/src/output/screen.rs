//! Where text is shown: how wide it is, and whether it has colours.

use std::io::IsTerminal;

/// A terminal, or what stands for one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Screen {
    /// Columns.
    pub width: usize,
    /// Whether there are colours.
    pub colour: bool,
}

/// Columns where there is no terminal.
const WIDTH: usize = 100;
/// No table gets better on wider ones.
const MOST: usize = 160;

impl Screen {
    /// A file or a pipe.
    #[must_use]
    pub fn file() -> Screen {
        Screen { width: WIDTH, colour: false }
    }

    /// What standard output is. Colours only on a terminal, and not if NO_COLOR is set to anything
    /// or TERM is `dumb`.
    #[must_use]
    pub fn of_stdout() -> Screen {
        let out = std::io::stdout();
        if !out.is_terminal() {
            return Screen::file();
        }
        let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let size = rustix::termios::tcgetwinsize(&out).ok();
        let width = size.map(|size| usize::from(size.ws_col)).filter(|width| *width > 0);
        Screen { width: width.unwrap_or(WIDTH).min(MOST), colour: !set("NO_COLOR") && !dumb }
    }

    /// The text in a style, where there are colours.
    #[must_use]
    pub fn paint(self, style: Style, text: &str) -> String {
        if self.colour {
            format!("\u{1b}[{}m{text}\u{1b}[0m", style.code())
        } else {
            text.to_owned()
        }
    }
}

/// How text looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Heads.
    Bold,
    /// What matters less.
    Dim,
    /// Neither good nor bad.
    Plain,
    /// Good.
    Good,
    /// Neither.
    Fair,
    /// Bad.
    Bad,
}

impl Style {
    fn code(self) -> &'static str {
        match self {
            Style::Bold => "1",
            Style::Dim => "2",
            Style::Plain => "36",
            Style::Good => "32",
            Style::Fair => "33",
            Style::Bad => "31",
        }
    }
}
