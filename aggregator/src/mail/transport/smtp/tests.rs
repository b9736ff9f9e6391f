use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::thread;

use super::*;

/// What a server answers to MAIL, RCPT, DATA and the text; `-` hangs up.
type Answers = [&'static str; 4];

const FINE: Answers = ["250 ok", "250 ok", "354 go on", "250 taken"];

fn serve(listener: &TcpListener, [mail, rcpt, data, end]: Answers) -> Option<()> {
    let (stream, _) = listener.accept().ok()?;
    let mut out = stream.try_clone().ok()?;
    let mut say = |text: &str| (text != "-").then(|| write!(out, "{text}\r\n").ok())?;
    say("220 test")?;
    let mut in_text = false;
    for line in BufReader::new(stream).lines() {
        let line = line.ok()?;
        if in_text {
            if line == "." {
                in_text = false;
                say(end)?;
            }
            continue;
        }
        match line.get(..4).unwrap_or_default() {
            "MAIL" => say(mail)?,
            "RCPT" => say(rcpt)?,
            "DATA" => {
                in_text = data.starts_with('3');
                say(data)?;
            }
            _ => say("250 ok")?,
        }
    }
    Some(())
}

/// What becomes of two mails, one after the other.
fn sent(answers: Answers) -> [Result<(), SendError>; 2] {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for _ in 0..4 {
            serve(&listener, answers);
        }
    });
    let smtp = config::Smtp {
        host: "127.0.0.1".to_owned(),
        port: Some(port),
        timeout: steward_common::span::Span(Duration::from_secs(5)),
        ..config::Smtp::default()
    };
    let server = Server::open(&smtp).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (from, to) = ("s@example.org".parse().unwrap(), "a@example.org".parse().unwrap());
    runtime.block_on(async {
        let text = b"A: b\r\n\r\n.c\r\n";
        [server.send(text, &from, &to).await, server.send(text, &from, &to).await]
    })
}

fn word(result: &Result<(), SendError>) -> &'static str {
    match result {
        Ok(()) => "taken",
        Err(SendError::Refused { permanent: true, .. }) => "refused",
        Err(SendError::Refused { permanent: false, .. }) => "refused for now",
        Err(SendError::Down { .. }) => "down",
        Err(SendError::Unsure { .. }) => "unsure",
    }
}

#[test]
fn what_an_error_means_depends_on_how_far_the_text_was() {
    let with = |at: usize, answer: &'static str| {
        let mut answers = FINE;
        answers[at] = answer;
        answers
    };
    for (answers, expected) in [
        (FINE, "taken"),
        (with(0, "550 not you"), "down"),
        (with(0, "-"), "down"),
        (with(1, "550 unknown"), "refused"),
        (with(1, "450 later"), "refused for now"),
        (with(1, "421 going"), "down"),
        (with(1, "-"), "down"),
        (with(2, "554 no"), "refused"),
        (with(2, "-"), "down"),
        (with(3, "554 spam"), "refused"),
        (with(3, "452 full"), "refused for now"),
        (with(3, "421 going"), "down"),
        (with(3, "-"), "unsure"),
        (with(3, "nonsense"), "unsure"),
    ] {
        // The second goes over the same connection where that is still good, else over a new one.
        for result in &sent(answers) {
            assert_eq!(word(result), expected, "{answers:?}: {result:?}");
        }
    }
}

#[test]
fn what_a_server_says_is_made_harmless() {
    let [first, _] = sent(["250 ok", "550 \u{1b}[2J gone", "354 go on", "250 taken"]);
    let said = first.unwrap_err().to_string();
    assert!(said.contains("gone") && !said.contains('\u{1b}'), "{said}");
}
