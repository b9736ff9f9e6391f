//! Text from outside made harmless.

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
}
