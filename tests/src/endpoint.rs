//! A page with metrics that a test writes: what an exporter of somebody else would serve.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

/// An exporter whose page is a text; it serves for as long as the test runs.
#[derive(Clone, Debug)]
pub struct Endpoint {
    url: String,
    page: Arc<Mutex<String>>,
}

impl Endpoint {
    /// One with an empty page.
    ///
    /// # Panics
    /// If no port is free.
    pub fn start() -> Self {
        let listener =
            TcpListener::bind("127.0.0.1:0").unwrap_or_else(|error| panic!("endpoint: {error}"));
        let address = listener.local_addr().unwrap_or_else(|error| panic!("endpoint: {error}"));
        let page = Arc::new(Mutex::new(String::new()));
        let shown = Arc::clone(&page);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let text = shown.lock().map(|text| text.clone()).unwrap_or_default();
                let mut reader = BufReader::new(&stream);
                let mut line = String::new();
                // The head of the request ends with an empty line.
                while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
                    line.clear();
                }
                let answer = format!(
                    "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\n\
                     Content-Length: {}\r\nConnection: close\r\n\r\n{text}",
                    text.len()
                );
                // Who has gone does not want it any more.
                let _gone = (&stream).write_all(answer.as_bytes());
            }
        });
        Self { url: format!("http://{address}"), page }
    }

    /// Where it is.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// What it shows from now on.
    pub fn show(&self, text: String) {
        if let Ok(mut page) = self.page.lock() {
            *page = text;
        }
    }
}
