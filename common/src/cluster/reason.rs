//! Why jobs wait, as a label: without the lists of nodes that Slurm writes into it.

use std::borrow::Cow;

/// The reason without what stands behind a colon: `ReqNodeNotAvail, UnavailableNodes:n[1-2]` is
/// `ReqNodeNotAvail, UnavailableNodes`, whichever nodes are meant. One pair of parentheses that
/// squeue's `%R` adds around another is taken away.
#[must_use]
pub fn label(text: &str) -> Cow<'_, str> {
    let text = text.trim();
    let inner = text
        .strip_prefix("((")
        .and_then(|rest| rest.strip_suffix("))"))
        .and_then(|_| text.get(1..text.len() - 1));
    let text = inner.unwrap_or(text);
    match text.split_once(':') {
        Some((before, _)) if text.starts_with('(') => Cow::Owned(format!("{})", before.trim_end())),
        Some((before, _)) => Cow::Borrowed(before.trim_end()),
        None => Cow::Borrowed(text),
    }
}

#[cfg(test)]
mod tests {
    use super::label;

    #[test]
    fn n23_lists_of_unavailable_nodes_are_one_label() {
        for (text, expected) in [
            (
                "((ReqNodeNotAvail, UnavailableNodes:cs[100,101,102]))",
                "(ReqNodeNotAvail, UnavailableNodes)",
            ),
            ("(ReqNodeNotAvail, UnavailableNodes:n2)", "(ReqNodeNotAvail, UnavailableNodes)"),
            ("ReqNodeNotAvail, UnavailableNodes:n2", "ReqNodeNotAvail, UnavailableNodes"),
            (
                "ReqNodeNotAvail, Reserved for maintenance",
                "ReqNodeNotAvail, Reserved for maintenance",
            ),
            ("Resources", "Resources"),
            ("", ""),
        ] {
            assert_eq!(label(text), expected, "{text:?}");
        }
    }
}
