//! A rule as a site uses it.

use super::{Rule, Scope};

/// A rule with the name, the options and the scope that a site gives it. A site may have several of
/// one rule.
#[derive(Debug)]
pub struct Instance {
    /// Its name, which no other has: the key in the store, in mails and in metrics.
    pub name: String,
    /// The rule with its options.
    pub rule: Box<dyn Rule>,
    /// The jobs that it is about.
    pub scope: Scope,
}

impl Instance {
    /// The rule as it comes, under its own name.
    #[must_use]
    pub fn of(rule: Box<dyn Rule>) -> Instance {
        Instance { name: rule.id().as_str().to_owned(), scope: rule.scope(), rule }
    }
}
