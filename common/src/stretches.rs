//! Sets of moments, kept as windows that do not touch: what has been collected, what is missing.

use crate::time::Timestamp;
use crate::window::Window;

/// A set of moments.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Stretches(Vec<Window>);

impl Stretches {
    /// The windows, earliest first.
    #[must_use]
    pub fn windows(&self) -> &[Window] {
        &self.0
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The first moment.
    #[must_use]
    pub fn first(&self) -> Option<Timestamp> {
        self.0.first().map(|window| window.from())
    }

    /// The first moment after the last.
    #[must_use]
    pub fn last(&self) -> Option<Timestamp> {
        self.0.last().map(|window| window.to())
    }

    /// Whether all of the window is in the set.
    #[must_use]
    pub fn holds(&self, window: Window) -> bool {
        self.0.iter().any(|mine| mine.overlap(window) == Some(window))
    }

    /// Adds a window; those that touch become one.
    pub fn add(&mut self, window: Window) {
        let (mut from, mut to) = (window.from(), window.to());
        self.0.retain(|mine| {
            let apart = mine.to() < from || to < mine.from();
            if !apart {
                (from, to) = (from.min(mine.from()), to.max(mine.to()));
            }
            apart
        });
        self.0.extend(Window::new(from, to));
        self.0.sort_unstable();
    }

    /// Takes a window out.
    pub fn remove(&mut self, window: Window) {
        let mine = std::mem::take(&mut self.0);
        for part in mine {
            self.0.extend(Window::new(part.from(), part.to().min(window.from())));
            self.0.extend(Window::new(part.from().max(window.to()), part.to()));
        }
    }

    /// What of the window is not in the set.
    #[must_use]
    pub fn missing(&self, window: Window) -> Stretches {
        let mut missing = Stretches(vec![window]);
        for mine in &self.0 {
            missing.remove(*mine);
        }
        missing
    }
}

impl FromIterator<Window> for Stretches {
    fn from_iter<I: IntoIterator<Item = Window>>(windows: I) -> Stretches {
        let mut set = Stretches::default();
        for window in windows {
            set.add(window);
        }
        set
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn window(from: i64, to: i64) -> Window {
        Window::new(Timestamp::new(from), Timestamp::new(to)).unwrap()
    }

    #[test]
    fn windows_that_touch_become_one_and_gaps_are_found() {
        let mut set: Stretches =
            [window(0, 10), window(20, 30), window(10, 15)].into_iter().collect();
        assert_eq!(set.windows(), [window(0, 15), window(20, 30)]);
        assert_eq!(set.missing(window(5, 40)).windows(), [window(15, 20), window(30, 40)]);
        set.remove(window(3, 22));
        assert_eq!(set.windows(), [window(0, 3), window(22, 30)]);
        assert!(set.holds(window(23, 30)) && !set.holds(window(2, 23)));
    }

    proptest! {
        #[test]
        fn a_set_is_the_set_of_its_moments(
            adds in prop::collection::vec((0i64..60, 1i64..9, any::<bool>()), 0..12)
        ) {
            let mut set = Stretches::default();
            let mut moments = [false; 80];
            for (from, length, add) in adds {
                let one = window(from, from + length);
                if add { set.add(one) } else { set.remove(one) }
                for at in from..from + length {
                    moments[usize::try_from(at).unwrap()] = add;
                }
            }
            for at in 0..80i64 {
                let here = set.windows().iter().any(|w| w.holds(Timestamp::new(at)));
                prop_assert_eq!(here, moments[usize::try_from(at).unwrap()], "at {}", at);
            }
            for pair in set.windows().windows(2) {
                prop_assert!(pair[0].to() < pair[1].from());
            }
        }
    }
}
