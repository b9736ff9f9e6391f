//! Lines of `scontrol -o show …`: `Key=value Key=value …`.

use std::collections::BTreeMap;

/// The fields of a line. A value may hold blanks; it ends where the next key begins. Of a key that
/// comes twice the first counts: free text, in which anybody may write `State=IDLE`, comes last.
#[must_use]
pub fn fields(line: &str) -> BTreeMap<&str, &str> {
    let mut fields = BTreeMap::new();
    let mut open: Option<(&str, usize)> = None;
    let mut at = 0;
    for word in line.split(' ') {
        if let Some((key, _)) = word.split_once('=')
            && is_key(key)
        {
            close(&mut fields, line, open.take(), at);
            open = Some((key, at + key.len() + 1));
        }
        at += word.len() + 1;
    }
    close(&mut fields, line, open, line.len() + 1);
    fields
}

/// Ends a value before the blank that stands at `end - 1`.
fn close<'a>(
    fields: &mut BTreeMap<&'a str, &'a str>,
    line: &'a str,
    open: Option<(&'a str, usize)>,
    end: usize,
) {
    if let Some((key, start)) = open
        && let Some(value) = line.get(start..end.saturating_sub(1))
    {
        fields.entry(key).or_insert(value.trim());
    }
}

fn is_key(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_uppercase())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_/:".contains(&byte))
}

/// Whether a value says that there is none.
#[must_use]
pub fn is_nothing(value: &str) -> bool {
    matches!(value, "" | "(null)" | "N/A" | "n/a" | "None" | "n/s")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_may_hold_blanks_and_equals_signs() {
        let line = "NodeName=n1 CPULoad=4.64  OS=Linux 6.18 #1 SMP @0  State=IDLE+DRAIN \
                    CfgTRES=cpu=8,mem=4000M AllocTRES= Reason=see ticket=12 State=DOWN [root@17]";
        let fields = fields(line);
        assert_eq!(fields.get("NodeName"), Some(&"n1"));
        assert_eq!(fields.get("OS"), Some(&"Linux 6.18 #1 SMP @0"));
        assert_eq!(fields.get("State"), Some(&"IDLE+DRAIN"));
        assert_eq!(fields.get("CfgTRES"), Some(&"cpu=8,mem=4000M"));
        assert_eq!(fields.get("AllocTRES"), Some(&""));
        assert_eq!(fields.get("Reason"), Some(&"see ticket=12"));
        assert!(super::fields("No reservations in the system").is_empty());
    }
}
