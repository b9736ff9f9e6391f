//! Many small records by their key, close together.
//!
//! Of every process on a node some are kept from scan to scan. A hash map leaves up to half of its
//! room empty; a sorted list leaves none. The kernel lists processes in order, so that a new one
//! nearly always goes to the end.

/// Records sorted by their key.
#[derive(Clone, Debug)]
pub struct Table<K, V>(Vec<(K, V)>);

impl<K, V> Default for Table<K, V> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<K: Ord + Copy, V> Table<K, V> {
    /// Has room for `count` records in all, and no more unless they come.
    pub fn make_room(&mut self, count: usize) {
        self.0.reserve_exact(count.saturating_sub(self.0.len()));
    }

    /// The record of `key`.
    pub fn get(&self, key: K) -> Option<&V> {
        self.find(key).ok().and_then(|at| self.0.get(at)).map(|(_, value)| value)
    }

    /// The record of `key`, to be changed.
    pub fn get_mut(&mut self, key: K) -> Option<&mut V> {
        let at = self.find(key).ok()?;
        self.0.get_mut(at).map(|(_, value)| value)
    }

    /// Puts a record in the place of the one that had its key, which is returned.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        match self.find(key) {
            Ok(at) => self.0.get_mut(at).map(|(_, old)| std::mem::replace(old, value)),
            Err(at) => {
                if self.0.len() == self.0.capacity() {
                    self.0.reserve_exact(self.0.len() / 8 + 4);
                }
                self.0.insert(at, (key, value));
                None
            }
        }
    }

    /// Drops those that `keep` does not want, and their room if it is much.
    pub fn retain(&mut self, mut keep: impl FnMut(&V) -> bool) {
        self.0.retain(|(_, value)| keep(value));
        if self.0.capacity() > self.0.len() * 2 {
            self.0.shrink_to_fit();
        }
    }

    /// All, in order.
    pub fn iter(&self) -> impl Iterator<Item = (K, &V)> {
        self.0.iter().map(|(key, value)| (*key, value))
    }

    /// All, in order, to be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (K, &mut V)> {
        self.0.iter_mut().map(|(key, value)| (*key, value))
    }

    /// Those from `first` on.
    pub fn from(&self, first: K) -> impl Iterator<Item = (K, &V)> {
        let at = self.0.partition_point(|(key, _)| *key < first);
        self.0.get(at..).unwrap_or_default().iter().map(|(key, value)| (*key, value))
    }

    /// How many there are.
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn find(&self, key: K) -> Result<usize, usize> {
        // Past the end is where a new one goes, as a rule.
        match self.0.last() {
            Some((last, _)) if *last < key => Err(self.0.len()),
            _ => self.0.binary_search_by(|(one, _)| one.cmp(&key)),
        }
    }
}

impl<K: Ord + Copy, V> FromIterator<(K, V)> for Table<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(records: I) -> Self {
        let mut table = Self::default();
        for (key, value) in records {
            table.insert(key, value);
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn it_holds_what_a_map_holds(
            steps in proptest::collection::vec((0..40_u32, 0..100_u32, 0..8), 0..200),
        ) {
            let (mut table, mut map) = (Table::default(), BTreeMap::new());
            for (key, value, dice) in steps {
                if dice == 0 {
                    table.retain(|kept| *kept >= value);
                    map.retain(|_, kept| *kept >= value);
                } else {
                    prop_assert_eq!(table.insert(key, value), map.insert(key, value));
                }
                prop_assert_eq!(table.get(value), map.get(&value));
                prop_assert_eq!(table.get_mut(key), map.get_mut(&key));
                prop_assert!(table.from(key).eq(map.range(key..).map(|(key, value)| (*key, value))));
                prop_assert_eq!((table.len(), table.is_empty()), (map.len(), map.is_empty()));
            }
            prop_assert!(table.iter().eq(map.iter().map(|(key, value)| (*key, value))));
            let again: Table<_, _> = map.into_iter().rev().collect();
            prop_assert!(again.iter().eq(table.iter()));
        }
    }

    #[test]
    fn it_takes_no_more_room_than_it_needs() {
        let mut table = Table::default();
        table.make_room(80);
        (0..80).for_each(|key| _ = table.insert(key, key));
        assert_eq!(table.0.capacity(), 80);
        table.insert(80, 80);
        assert!(table.0.capacity() < 100);
        table.retain(|value| *value < 10);
        assert_eq!(table.0.capacity(), 10);
    }
}
