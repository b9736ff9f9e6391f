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

/// Asks for a page.
///
/// # Errors
/// If nobody answers.
pub fn get(url: &str) -> reqwest::Result<reqwest::blocking::Response> {
    client().get(url).send()
}
