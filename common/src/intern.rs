//! Names as small numbers, for sums over millions of rows.

use std::collections::HashMap;

/// A name of one [`Names`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(u32);

impl Name {
    /// Its place in the table, for lists that run beside it.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A table of names, each in it once.
#[derive(Debug, Clone, Default)]
pub struct Names {
    texts: Vec<String>,
    places: HashMap<String, u32>,
}

impl Names {
    /// The name for this text, made if it is new.
    pub fn intern(&mut self, text: &str) -> Name {
        if let Some(place) = self.places.get(text) {
            return Name(*place);
        }
        // More than four thousand million different names do not fit into memory.
        let place = u32::try_from(self.texts.len()).unwrap_or(u32::MAX);
        self.texts.push(text.to_owned());
        self.places.insert(text.to_owned(), place);
        Name(place)
    }

    /// The name for this text, if it is in the table.
    #[must_use]
    pub fn find(&self, text: &str) -> Option<Name> {
        self.places.get(text).copied().map(Name)
    }

    /// The text of a name; empty for a name of another table.
    #[must_use]
    pub fn text(&self, name: Name) -> &str {
        self.texts.get(name.index()).map_or("", String::as_str)
    }

    /// How many names there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// All names with their texts.
    pub fn iter(&self) -> impl Iterator<Item = (Name, &str)> {
        (0..).map(Name).zip(self.texts.iter().map(String::as_str))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_one_name_and_comes_back() {
        let mut names = Names::default();
        let (alice, bob) = (names.intern("alice"), names.intern("bob"));
        assert_eq!(names.intern("alice"), alice);
        assert_ne!(alice, bob);
        assert_eq!((names.text(bob), names.len(), names.find("carol")), ("bob", 2, None));
        assert_eq!(names.iter().map(|(_, text)| text).collect::<Vec<_>>(), ["alice", "bob"]);
    }
}
