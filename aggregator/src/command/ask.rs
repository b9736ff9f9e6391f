//! Asks the person at the terminal before something is done that cannot be undone.

use std::io::{BufRead, IsTerminal, Write};

use super::BadInput;

/// Whether the answer is yes.
///
/// # Errors
/// If there is nobody to ask; then `option` must be given.
pub fn confirm(question: &str, option: &str) -> anyhow::Result<bool> {
    let input = std::io::stdin();
    if !input.is_terminal() {
        let why = format!("{question} There is no terminal to ask at: give {option}");
        return Err(BadInput(why).into());
    }
    let mut out = std::io::stderr();
    write!(out, "{question} [y/N] ")?;
    out.flush()?;
    let mut answer = String::new();
    input.lock().read_line(&mut answer)?;
    Ok(is_yes(&answer))
}

fn is_yes(answer: &str) -> bool {
    matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_yes_is_yes() {
        assert!(is_yes("y\n") && is_yes(" YES \n"));
        assert!(!is_yes("") && !is_yes("\n") && !is_yes("n\n") && !is_yes("yesterday"));
    }
}
