//! The numbers of jobs of which something is new.

use roaring::RoaringBitmap;

/// Numbers that are added together: in their order that is quick, each by itself it is not.
const LATEST: usize = 4096;

/// A set of numbers that come one by one.
#[derive(Debug, Default)]
pub struct Numbers {
    all: RoaringBitmap,
    /// Those that came last and are not among them yet.
    latest: Vec<u32>,
}

impl Numbers {
    /// Adds a number.
    pub fn add(&mut self, number: u32) {
        self.latest.push(number);
        if self.latest.len() >= LATEST {
            self.settle();
        }
    }

    /// All of them.
    #[must_use]
    pub fn all(mut self) -> RoaringBitmap {
        self.settle();
        self.all
    }

    fn settle(&mut self) {
        self.latest.sort_unstable();
        self.all.extend(self.latest.drain(..));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_come_in_any_order_and_often_are_there_once() {
        let mut numbers = Numbers::default();
        (0..10_000).rev().chain(5_000..12_000).for_each(|number| numbers.add(number));
        assert!(numbers.all().into_iter().eq(0..12_000));
        assert!(Numbers::default().all().is_empty());
    }
}
