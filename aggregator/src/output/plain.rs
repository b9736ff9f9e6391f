//! Text from outside made harmless, measured and cut.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The text with every character shown: control characters, invisible ones and those that turn
/// the direction of writing appear as escapes. Anyone may give a job a name that would clear an
/// administrator's screen.
#[must_use]
pub fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            '\t' => shown.push_str("\\t"),
            c if c.is_ascii_control() => shown += &format!("\\x{:02x}", u32::from(c)),
            c if is_hidden(c) => shown += &format!("\\u{{{:x}}}", u32::from(c)),
            c => shown.push(c),
        }
    }
    shown
}

/// Whether a character does something other than to appear.
#[must_use]
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(
            u32::from(c),
            0xAD | 0x61C | 0x180E | 0x200B..=0x200F | 0x2028..=0x202E | 0x2060..=0x206F
                | 0xFEFF | 0xFFF9..=0xFFFB | 0xE0000..=0xE0FFF
        )
}

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
    fn nothing_that_acts_gets_through() {
        for (text, shown) in [
            ("train \u{1b}[2J", "train \\x1b[2J"),
            ("a\nb\tc\r", "a\\nb\\tc\\r"),
            ("\u{202e}evil", "\\u{202e}evil"),
            ("zero\u{200b}width", "zero\\u{200b}width"),
            ("\u{9b}31m\u{7f}", "\\u{9b}31m\\x7f"),
            ("größe 計算", "größe 計算"),
        ] {
            assert_eq!(visible(text), shown);
        }
    }

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
