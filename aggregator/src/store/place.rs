//! Where a store is: a file of SQLite, or a database of PostgreSQL.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use reqwest::Url;

/// What may follow the `?` of an address. Others would be passed over, and what they were meant for would not be.
const PARAMETERS: &[&str] = &[
    "sslmode",
    "sslrootcert",
    "sslcert",
    "sslkey",
    "host",
    "hostaddr",
    "port",
    "dbname",
    "user",
    "application_name",
];

/// Where a store is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A file of SQLite.
    File(PathBuf),
    /// A database of PostgreSQL.
    Server {
        /// Its address.
        address: Address,
        /// A file with the password; without one PostgreSQL must not want any, or it is in `~/.pgpass`.
        password_file: Option<PathBuf>,
    },
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::File(path) => write!(f, "{}", path.display()),
            Place::Server { address, .. } => write!(f, "{address}"),
        }
    }
}

/// The address of a database of PostgreSQL. It never has a password, so it may be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address(Url);

impl Address {
    /// The same with a password, for nobody's eyes.
    pub(super) fn with_password(&self, password: Option<&str>) -> Url {
        let mut url = self.0.clone();
        // It is refused only by addresses without a host, where PostgreSQL asks for none.
        if url.set_password(password).is_err() {
            return self.0.clone();
        }
        url
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Address {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Address, &'static str> {
        // What is wrong is said without the text: it may hold a password.
        let url = Url::parse(text).map_err(|_| EXPECTED)?;
        if !matches!(url.scheme(), "postgres" | "postgresql") || url.cannot_be_a_base() {
            return Err(EXPECTED);
        }
        if url.password().is_some() || url.query_pairs().any(|(key, _)| key == "password") {
            return Err("must not hold the password: name a file with it in store.password_file");
        }
        if url.query_pairs().any(|(key, _)| !PARAMETERS.contains(&&*key)) {
            return Err("after its ? only sslmode, sslrootcert, sslcert, sslkey, host, hostaddr, \
                        port, dbname, user and application_name are known");
        }
        let named = |name: &str| url.query_pairs().any(|(key, _)| key == name);
        if url.path().trim_start_matches('/').is_empty() && !named("dbname") {
            return Err(EXPECTED);
        }
        Ok(Address(url))
    }
}

const EXPECTED: &str = "expected an address such as postgres://steward@db.example.org/steward";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_a_database_and_never_a_password() {
        for text in [
            "postgres://steward@db.example.org/steward",
            "postgresql://db:5433/steward?sslmode=verify-full&sslrootcert=/etc/ca.pem",
            "postgres:///steward?host=/run/postgresql&user=steward",
        ] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
        }
        for text in [
            "postgres://steward:s3cret@db/steward",
            "postgres://steward@db/steward?password=s3cret",
            "postgres://steward@db/steward?pasword=s3cret",
            "mysql://steward:s3cret@db/steward",
            "postgres://steward@db",
            "postgres://s3cret@db:port/steward",
            "/var/lib/s3cret",
        ] {
            let said = text.parse::<Address>().unwrap_err();
            assert!(!said.contains("s3cret"), "{said}");
        }
    }

    #[test]
    fn a_password_with_odd_signs_is_one_part_of_the_address() {
        let address: Address = "postgres://steward@db/steward".parse().unwrap();
        let url = address.with_password(Some("a@b/c?d#é:%"));
        assert_eq!((url.host_str(), url.path(), url.query()), (Some("db"), "/steward", None));
        assert_eq!(address.to_string(), "postgres://steward@db/steward");
    }
}
