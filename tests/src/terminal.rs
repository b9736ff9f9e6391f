//! A command on a terminal, as a person sees it.

use std::process::{Command, Stdio};

/// Runs a command to its end on a terminal of so many columns, which is also its standard error; `to`
/// are redirections of a shell. What the terminal was sent, with ends of lines as in a file.
///
/// # Panics
/// If it cannot be started, or fails.
pub fn shown(columns: u16, command: &Command, to: &str) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words =
        words.map(|word| format!("'{}'", word.display().to_string().replace('\'', "'\\''")));
    let words: Vec<String> = words.collect();
    let line = format!("stty cols {columns} && exec {} {to}", words.join(" "));
    let mut script = Command::new("script");
    script.args(["--quiet", "--return", "--command", &line, "/dev/null"]).stdin(Stdio::null());
    script.env("TERM", "xterm-256color").env_remove("NO_COLOR");
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => script.env(name, value),
            None => script.env_remove(name),
        };
    }
    let output = script.output().unwrap_or_else(|error| panic!("script: {error}"));
    let text = String::from_utf8_lossy(&output.stdout).replace("\r\n", "\n");
    assert!(output.status.success(), "{line}: {}: {text}", output.status);
    text
}

/// The text without what only changes how it looks.
#[must_use]
pub fn plain(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |plain, part| {
        plain + part.find(|c: char| c.is_ascii_alphabetic()).map_or("", |end| &part[end + 1..])
    })
}
