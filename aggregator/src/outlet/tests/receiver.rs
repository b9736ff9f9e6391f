//! Somebody who takes requests, in place of an Alertmanager or the receiver of a webhook.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// What comes with a request: its first line, its headers in small letters, its body.
pub(super) type Request = (String, BTreeMap<String, String>, String);

/// Somebody who takes requests and answers with what he is told to; 0 is not at all.
#[derive(Clone, Debug)]
pub(super) struct Receiver {
    pub(super) url: String,
    answer: Arc<Mutex<u16>>,
    taken: Arc<Mutex<Vec<Request>>>,
}

impl Receiver {
    pub(super) async fn start() -> Receiver {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let receiver = Receiver { url, answer: Arc::new(Mutex::new(200)), taken: Arc::default() };
        let own = receiver.clone();
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let answer = *own.answer.lock().unwrap();
                if answer == 0 {
                    continue;
                }
                let mut text = Vec::new();
                let request = loop {
                    let mut part = [0; 4096];
                    let read = stream.read(&mut part).await.unwrap();
                    text.extend_from_slice(&part[..read]);
                    if let Some(request) = parse(&text) {
                        break request;
                    }
                };
                own.taken.lock().unwrap().push(request);
                let head = format!(
                    "HTTP/1.1 {answer} x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
                );
                stream.write_all(head.as_bytes()).await.unwrap();
            }
        });
        receiver
    }

    pub(super) fn answer(&self, code: u16) {
        *self.answer.lock().unwrap() = code;
    }

    pub(super) fn taken(&self) -> Vec<Request> {
        std::mem::take(&mut self.taken.lock().unwrap())
    }
}

fn parse(bytes: &[u8]) -> Option<Request> {
    let text = std::str::from_utf8(bytes).ok()?;
    let (head, body) = text.split_once("\r\n\r\n")?;
    let mut lines = head.lines();
    let first = lines.next()?.to_owned();
    let headers: BTreeMap<String, String> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
        .collect();
    let length: usize = headers.get("content-length")?.parse().ok()?;
    (body.len() >= length).then(|| (first, headers, body.to_owned()))
}
