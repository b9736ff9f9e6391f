//! One HTTP client for all tests: to make one takes longer than most requests.

use std::sync::OnceLock;
use std::time::Duration;

use reqwest::blocking::Client;

/// The client; every request ends within ten seconds.
///
/// # Panics
/// If it cannot be made.
pub fn client() -> &'static Client {
    static CLIENT: OnceLock<Client> = OnceLock::new();
    CLIENT.get_or_init(|| {
        Client::builder()
            .timeout(Duration::from_secs(10))
            .build()
            .unwrap_or_else(|error| panic!("no HTTP client: {error}"))
    })
}

/// Asks for a page; once more if the connection was closed, as an agent does with an old one.
///
/// # Errors
/// If nobody answers.
pub fn get(url: &str) -> reqwest::Result<reqwest::blocking::Response> {
    match client().get(url).send() {
        Err(error) if !error.is_timeout() => client().get(url).send(),
        answer => answer,
    }
}
