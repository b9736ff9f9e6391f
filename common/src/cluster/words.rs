//! Text that recurs, kept once: a hundred thousand jobs have some hundred users and partitions.

use std::collections::HashSet;
use std::sync::Arc;

/// Words seen so far. Thrown away with the answer that they came from; what is in use stays.
#[derive(Debug, Default)]
pub struct Words(HashSet<Arc<str>>);

impl Words {
    /// The one copy of this text.
    pub fn intern(&mut self, text: &str) -> Arc<str> {
        if text.is_empty() {
            return Arc::default();
        }
        if let Some(word) = self.0.get(text) {
            return Arc::clone(word);
        }
        let word: Arc<str> = Arc::from(text);
        self.0.insert(Arc::clone(&word));
        word
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_text_is_the_same_word() {
        let mut words = Words::default();
        let (a, b, c) = (words.intern("gpu"), words.intern("gpu"), words.intern("cpu"));
        assert!(Arc::ptr_eq(&a, &b) && !Arc::ptr_eq(&a, &c));
        assert_eq!(&*words.intern(""), "");
    }
}
