//! Sentences with figures in them, as they stand in `words.toml`.
//!
//! `{key}` is a figure, `{key|job|jobs}` a number with its noun, `{key:it|them}` a word that follows
//! a number. What stands in `[brackets]` is left out where a figure in it is not known.

use std::collections::BTreeMap;

/// A figure as a sentence shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct Shown {
    /// As people read it.
    pub text: String,
    /// The number, which decides between singular and plural.
    pub number: Option<f64>,
}

impl Shown {
    /// Text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Shown {
        Shown { text: text.into(), number: None }
    }
}

/// Figures by key.
pub type Figures = BTreeMap<String, Shown>;

/// The sentence with its figures; `None` if one outside of brackets is not known, or if the pattern is
/// no sentence of this kind.
#[must_use]
pub fn filled(pattern: &str, figures: &Figures, below_two: bool) -> Option<String> {
    let mut out = String::new();
    let mut rest = pattern;
    while let Some(at) = rest.find('[') {
        let (before, after) = rest.split_at(at);
        let (inside, after) = after.get(1..)?.split_once(']')?;
        out += &plain(before, figures, below_two)?;
        out += &plain(inside, figures, below_two).unwrap_or_default();
        rest = after;
    }
    Some(out + &plain(rest, figures, below_two)?)
}

fn plain(pattern: &str, figures: &Figures, below_two: bool) -> Option<String> {
    let mut out = String::new();
    let mut rest = pattern;
    while let Some(at) = rest.find('{') {
        let (before, after) = rest.split_at(at);
        let (inside, after) = after.get(1..)?.split_once('}')?;
        out += before;
        out += &figure(inside, figures, below_two)?;
        rest = after;
    }
    Some(out + rest)
}

fn figure(inside: &str, figures: &Figures, below_two: bool) -> Option<String> {
    let Some(at) = inside.find(['|', ':']) else {
        return figures.get(inside).map(|shown| shown.text.clone());
    };
    let (key, words) = (inside.get(..at)?, inside.get(at + 1..)?);
    let shown = figures.get(key)?;
    let (one, many) = words.split_once('|')?;
    let number = shown.number?;
    let single = if below_two { number.abs() < 2.0 } else { shown.text == "1" };
    let word = if single { one } else { many };
    Some(if inside.get(at..=at)? == "|" {
        format!("{} {word}", shown.text)
    } else {
        word.to_owned()
    })
}

/// The keys that a sentence names, those in brackets among them.
#[cfg(test)]
pub fn keys(pattern: &str) -> Vec<&str> {
    pattern.split('{').skip(1).filter_map(|part| part.split(['}', '|', ':']).next()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(number: f64, text: &str) -> Figures {
        let shown = Shown { text: text.to_owned(), number: Some(number) };
        Figures::from([("n".to_owned(), shown), ("user".to_owned(), Shown::text("ann"))])
    }

    #[test]
    fn figures_nouns_and_what_is_not_known() {
        let many = figures(1200.0, "1,200");
        for (pattern, expected) in [
            ("{n|job|jobs} of {user}.", Some("1,200 jobs of ann.")),
            ("It{n:|s} {n:is|are}", Some("Its are")),
            ("a[ and {x}] b[ {user}]", Some("a b ann")),
            ("a {x}", None),
            ("a {user", None),
            ("a [b", None),
            ("{user|a|b}", None),
            ("", Some("")),
        ] {
            assert_eq!(filled(pattern, &many, false).as_deref(), expected, "{pattern}");
        }
    }

    #[test]
    fn one_and_none_follow_the_language() {
        for (number, text, english, french) in [
            (1.0, "1", "1 job", "1 job"),
            (0.0, "0", "0 jobs", "0 job"),
            (1.5, "1.5", "1.5 jobs", "1.5 job"),
            (2.0, "2", "2 jobs", "2 jobs"),
        ] {
            let figures = figures(number, text);
            assert_eq!(filled("{n|job|jobs}", &figures, false).unwrap(), english);
            assert_eq!(filled("{n|job|jobs}", &figures, true).unwrap(), french);
        }
    }

    #[test]
    fn keys_are_named() {
        assert_eq!(keys("{a} [{b|x|y}] {c:d|e}"), ["a", "b", "c"]);
    }
}
