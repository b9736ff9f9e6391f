//! Who runs this program, for the audit log.

use nix::unistd::{Uid, User, getuid};

/// The name of the person: who called sudo where that was, else whose process this is.
#[must_use]
pub fn actor() -> String {
    name(getuid(), std::env::var("SUDO_USER").ok())
}

/// Only root's word on who called it counts: everybody can set a variable.
fn name(uid: Uid, sudo: Option<String>) -> String {
    if uid.is_root()
        && let Some(sudo) = sudo.filter(|name| !name.is_empty())
    {
        return sudo;
    }
    match User::from_uid(uid) {
        Ok(Some(user)) => user.name,
        _ => format!("uid {uid}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_called_sudo_is_named_and_nobody_else_can_say_so() {
        let sudo = || Some("alice".to_owned());
        assert_eq!(name(Uid::from_raw(0), sudo()), "alice");
        assert_eq!(name(Uid::from_raw(0), None), "root");
        assert_eq!(name(Uid::from_raw(0), Some(String::new())), "root");
        assert_ne!(name(Uid::from_raw(1), sudo()), "alice");
        assert_eq!(name(Uid::from_raw(3_999_999), None), "uid 3999999");
    }
}
