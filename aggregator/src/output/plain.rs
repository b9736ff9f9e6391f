//! Text from outside made harmless, measured and cut.

pub use steward_common::visible::{is_hidden, visible};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// How many columns of a terminal it takes.
#[must_use]
pub fn width(text: &str) -> usize {
    text.width()
}

/// The text in at most so many columns; what was cut is told by `…`.
#[must_use]
pub fn cut(text: &str, most: usize) -> String {
    if width(text) <= most {
        return text.to_owned();
    }
    let (mut short, mut used) = (String::new(), 0);
    for c in text.chars() {
        used += c.width().unwrap_or(0);
        if used + 1 > most {
            break;
        }
        short.push(c);
    }
    if most > 0 {
        short.push('…');
    }
    short
}

/// The text in so many columns, at the left or at the right.
#[must_use]
pub fn padded(text: &str, columns: usize, right: bool) -> String {
    let space = " ".repeat(columns.saturating_sub(width(text)));
    if right { space + text } else { text.to_owned() + &space }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_characters_take_two_columns() {
        assert_eq!((width("計算"), cut("計算計算", 5)), (4, "計算…".to_owned()));
        assert_eq!(
            (cut("abcdef", 4), cut("abcd", 4), cut("abc", 0)),
            ("abc…".into(), "abcd".into(), String::new())
        );
        assert_eq!((padded("計", 4, true), padded("計", 4, false)), ("  計".into(), "計  ".into()));
    }
}
