//! Who looks after an account: `sacctmgr show account withcoordinator`.

use std::collections::{BTreeMap, BTreeSet};

/// What sacctmgr is asked.
pub const QUESTION: [&str; 6] =
    ["-n", "-P", "show", "account", "withcoordinator", "format=account,coordinators"];

/// Coordinators by account.
pub type Coordinators = BTreeMap<String, BTreeSet<String>>;

/// Of lines `account|first,second`; a line of another shape says nothing.
#[must_use]
pub fn parse(text: &str) -> Coordinators {
    let mut all = Coordinators::new();
    for line in text.lines() {
        let Some((account, names)) = line.split_once('|') else { continue };
        let names = names.split(',').map(str::trim).filter(|name| !name.is_empty());
        all.entry(account.trim().to_owned()).or_default().extend(names.map(str::to_owned));
    }
    all.retain(|_, names| !names.is_empty());
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_with_none_one_and_several() {
        let all = parse("root|\nphysics|bob\nchem|carol, dave\nnonsense\n");
        let of = |account: &str| all.get(account).map(|names| names.iter().cloned().collect());
        assert_eq!(of("physics"), Some(vec!["bob".to_owned()]));
        assert_eq!(of("chem"), Some(vec!["carol".to_owned(), "dave".to_owned()]));
        assert_eq!(of("root"), None);
        assert_eq!(all.len(), 2);
    }
}
