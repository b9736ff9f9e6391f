//! A limit that may not exist.

use std::fmt;

/// An upper bound, or the statement that there is none.
///
/// Ordered as one expects: every bound is below [`Limit::Unlimited`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Limit<T> {
    /// Up to and including this.
    At(T),
    /// No bound.
    Unlimited,
}

impl<T> Limit<T> {
    /// The bound, if there is one.
    pub fn at(self) -> Option<T> {
        match self {
            Limit::At(bound) => Some(bound),
            Limit::Unlimited => None,
        }
    }

    /// The same limit, on `f` of the quantity.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Limit<U> {
        match self {
            Limit::At(bound) => Limit::At(f(bound)),
            Limit::Unlimited => Limit::Unlimited,
        }
    }

    /// Borrows the bound.
    pub fn as_ref(&self) -> Limit<&T> {
        match self {
            Limit::At(bound) => Limit::At(bound),
            Limit::Unlimited => Limit::Unlimited,
        }
    }

    /// Whether there is no bound.
    pub fn is_unlimited(&self) -> bool {
        matches!(self, Limit::Unlimited)
    }
}

impl<T: fmt::Display> fmt::Display for Limit<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Limit::At(bound) => bound.fmt(f),
            Limit::Unlimited => f.write_str("unlimited"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Limit;

    #[test]
    fn unlimited_is_above_every_bound() {
        assert!(Limit::At(u64::MAX) < Limit::Unlimited);
        assert!(Limit::At(1) < Limit::At(2));
        assert_eq!(Limit::At(3).min(Limit::Unlimited), Limit::At(3));
    }

    #[test]
    fn map_keeps_unlimited() {
        assert_eq!(Limit::At(2).map(|n| n * 2), Limit::At(4));
        assert_eq!(Limit::<u8>::Unlimited.map(|n| n * 2), Limit::Unlimited);
    }

    #[test]
    fn no_number_stands_for_unlimited() {
        assert_eq!(Limit::At(0).at(), Some(0));
        assert_eq!(Limit::<u8>::Unlimited.at(), None);
        assert!(!Limit::At(u64::MAX).is_unlimited());
        assert_eq!(Limit::At("n".to_owned()).as_ref().at().map(String::len), Some(1));
    }

    #[test]
    fn display() {
        assert_eq!(Limit::At(7).to_string(), "7");
        assert_eq!(Limit::<u8>::Unlimited.to_string(), "unlimited");
    }
}
