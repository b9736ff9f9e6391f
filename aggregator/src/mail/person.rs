//! Who a user is: an address, and perhaps a name to greet.

use std::time::Duration;

use lettre::Address;
use nix::unistd::User;

use crate::config::{AddressMethod, GreetingMethod, Mail, address};
use crate::output::plain::is_hidden;

use super::ldap::{Directory, Entry};

/// A user as a recipient.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Person {
    /// The address.
    pub address: Address,
    /// The first name, if there is one that can be greeted.
    pub name: Option<String>,
}

/// Why a user cannot be written to. Names no user: who asks knows, and logs shall not.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// There is no address.
    #[error("no address is known; mail.address.map can name one")]
    Unknown,
    /// There is one, but it is none.
    #[error("what stands for the address is none; mail.address.map can name one")]
    Unusable,
    /// Whoever knows it does not answer: try again later.
    #[error("{0}")]
    Unreachable(String),
}

impl AddressError {
    /// Whether it may be known later.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        matches!(self, AddressError::Unreachable(_))
    }
}

/// How long the system's own user database may take.
const PASSWD: Duration = Duration::from_secs(10);

/// Looks a user up.
///
/// # Errors
/// If there is no address.
pub async fn look_up(
    user: &str,
    mail: &Mail,
    directory: Option<&Directory>,
) -> Result<Person, AddressError> {
    let known = mail.address.map.get(user);
    let by_address = known.is_none().then_some(mail.address.method);
    let by_name = mail.greeting.method;
    let gecos = if by_address == Some(AddressMethod::Passwd) || by_name == GreetingMethod::Passwd {
        gecos(user).await
    } else {
        Ok(None)
    };
    let entry = match directory {
        Some(directory)
            if by_address == Some(AddressMethod::Ldap) || by_name == GreetingMethod::Ldap =>
        {
            directory.find(user).await
        }
        _ => Ok(None),
    };
    let name = match by_name {
        GreetingMethod::User => None,
        // A name that cannot be had is no reason not to write.
        GreetingMethod::Passwd => {
            gecos.as_ref().ok().cloned().flatten().and_then(|text| name_of_gecos(&text))
        }
        GreetingMethod::Ldap => {
            let entry: Option<&Entry> = entry.as_ref().ok().and_then(Option::as_ref);
            entry.and_then(|entry| entry.name.as_deref()).and_then(first_name)
        }
    };
    let by_domain = || {
        let pattern = mail.address.domain.as_deref().ok_or(AddressError::Unknown)?;
        address(user, pattern).ok_or(AddressError::Unusable)
    };
    let address = match by_address {
        None => known.cloned().ok_or(AddressError::Unknown)?,
        Some(AddressMethod::Domain) => by_domain()?,
        Some(AddressMethod::Passwd) => {
            let gecos = gecos.map_err(AddressError::Unreachable)?.ok_or(AddressError::Unknown)?;
            match address_of_gecos(&gecos) {
                Some(address) => address,
                None => by_domain()?,
            }
        }
        Some(AddressMethod::Ldap) => {
            let entry = entry.map_err(AddressError::Unreachable)?.ok_or(AddressError::Unknown)?;
            let text = entry.mail.ok_or(AddressError::Unknown)?;
            text.trim().parse().map_err(|_| AddressError::Unusable)?
        }
    };
    Ok(Person { address, name })
}

/// The GECOS field of a user; `None` if there is no such user. It may come from the network.
async fn gecos(user: &str) -> Result<Option<String>, String> {
    let name = user.to_owned();
    let asked = tokio::task::spawn_blocking(move || User::from_name(&name));
    match tokio::time::timeout(PASSWD, asked).await {
        Ok(Ok(Ok(user))) => Ok(user.map(|user| user.gecos.to_string_lossy().into_owned())),
        Ok(Ok(Err(error))) => Err(format!("the system's users cannot be looked up: {error}")),
        Ok(Err(error)) => Err(format!("the system's users cannot be looked up: {error}")),
        Err(_) => Err("the system's users cannot be looked up: no answer in time".to_owned()),
    }
}

/// The field that is an address.
fn address_of_gecos(gecos: &str) -> Option<Address> {
    let is_address = |word: &&str| word.contains('@');
    let mut words = gecos.split([',', ';', ' ', '<', '>']).filter(is_address);
    words.find_map(|word| word.parse().ok())
}

/// The first name of the field with the full name.
fn name_of_gecos(gecos: &str) -> Option<String> {
    first_name(gecos.split(',').next()?)
}

/// The first name of a full name, if it looks like one.
fn first_name(full: &str) -> Option<String> {
    // `Turing, Alan`
    let given = full.split_once(',').map_or(full, |(_, given)| given);
    let word = given.split(' ').find(|word| !word.is_empty())?;
    let letter = |c: char| c.is_alphabetic() || "-'’".contains(c);
    let count = word.chars().count();
    let fine = word.chars().all(letter)
        && !word.chars().any(is_hidden)
        && word.chars().next().is_some_and(char::is_alphabetic)
        && (2..=40).contains(&count);
    fine.then(|| word.to_owned())
}

#[cfg(test)]
mod tests;
