//! Errors for people: libraries say what they did, the reasons are underneath.

use std::error::Error;

/// The error and all that caused it, in one line; what is repeated is left out.
#[must_use]
pub fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let inner_text = inner.to_string();
        if !text.contains(&inner_text) {
            text.push_str(": ");
            text.push_str(&inner_text);
        }
        cause = inner.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{text}")]
    struct Layer {
        text: &'static str,
        source: Option<Box<Layer>>,
    }

    #[test]
    fn every_cause_stands_once() {
        let inner = Layer { text: "connection refused", source: None };
        let middle = Layer { text: "connection refused", source: Some(Box::new(inner)) };
        let outer = Layer { text: "cannot push", source: Some(Box::new(middle)) };
        assert_eq!(with_causes(&outer), "cannot push: connection refused");
    }
}
