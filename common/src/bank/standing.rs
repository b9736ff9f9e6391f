//! Where an account stands: what it may use, held against what Slurm says that it has used.

use std::collections::BTreeMap;

use super::level::{Level, Levels};
use super::units::Units;
use crate::limit::Limit;

/// What an account may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allocation {
    /// On any cluster.
    pub floating: Limit<Units>,
    /// On one cluster, before the floating part is touched.
    pub clusters: BTreeMap<String, Units>,
}

impl Allocation {
    /// The sum of all parts.
    #[must_use]
    pub fn total(&self) -> Limit<Units> {
        let own: Units = self.clusters.values().copied().sum();
        self.floating.map(|floating| [floating, own].into_iter().sum())
    }

    /// What was taken of the floating part: on each cluster what goes beyond its own part, as far as it is known.
    #[must_use]
    pub fn taken(&self, usage: &Usage) -> Units {
        let beyond_own = |(name, used): (&String, &Option<Units>)| {
            let own = self.clusters.get(name).copied().unwrap_or(Units::ZERO);
            used.map(|used| used.minus(own).unwrap_or(used).or_nothing())
        };
        usage.iter().filter_map(beyond_own).sum()
    }
}

/// What was used on each cluster on which the account is; `None` where nobody could say.
pub type Usage = BTreeMap<String, Option<Units>>;

/// Where an account stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// What was used, as far as it is known.
    pub used: Units,
    /// Whether every cluster said what was used. Nothing may be released if not.
    pub complete: bool,
    /// What may be used.
    pub limit: Limit<Units>,
    /// The highest level that is reached.
    pub level: Option<Level>,
    /// The clusters on which nothing more may be used.
    pub over: Vec<String>,
}

impl Standing {
    /// Holds one against the other.
    ///
    /// What goes beyond a cluster's own part is taken from the floating one. When that is used up too,
    /// the clusters whose own part is used up, or that have none, are over. What is not known counts as
    /// nothing here, so an account that is over is so for certain.
    #[must_use]
    pub fn new(allocation: &Allocation, usage: &Usage, levels: &Levels) -> Standing {
        let known = || usage.iter().filter_map(|(name, used)| Some((name, (*used)?)));
        let used: Units = known().map(|(_, used)| used).sum();
        let mut standing = Standing {
            used,
            // Of an account that is on no cluster nobody says anything.
            complete: !usage.is_empty() && usage.values().all(Option::is_some),
            limit: allocation.total(),
            level: None,
            over: Vec::new(),
        };
        let (Limit::At(floating), Limit::At(total)) = (allocation.floating, standing.limit) else {
            return standing;
        };
        let own = |name: &String| allocation.clusters.get(name).copied();
        let taken = allocation.taken(usage);
        if levels.at_limit.is_beyond(taken, floating) {
            let at_limit = levels.at_limit;
            let is_over = |name: &String, used: &Option<Units>| match own(name) {
                None => true,
                Some(own) => used.is_some_and(|used| at_limit.is_beyond(used, own)),
            };
            let over = usage.iter().filter(|(name, used)| is_over(name, used));
            standing.over = over.map(|(name, _)| name.clone()).collect();
        }
        let parts = known().map(|(name, used)| {
            let most: Units = [own(name).unwrap_or(Units::ZERO), floating].into_iter().sum();
            (used, most)
        });
        let reached = parts.chain([(used, total)]);
        standing.level = if standing.over.is_empty() {
            reached.filter_map(|(used, most)| levels.reached(used, most)).max()
        } else {
            Some(Level::Over)
        };
        standing
    }

    /// What is left, by Slurm's word; `None` if there is no limit, or not every cluster answered.
    #[must_use]
    pub fn left(&self) -> Option<Units> {
        let limit = self.limit.at().filter(|_| self.complete)?;
        limit.minus(self.used)
    }

    /// Used of the limit; `None` if there is none, or not every cluster answered.
    #[must_use]
    pub fn share(&self) -> Option<f64> {
        let limit = self.limit.at().filter(|limit| self.complete && *limit > Units::ZERO)?;
        Some(self.used.hours() / limit.hours())
    }
}

#[cfg(test)]
mod tests {
    use super::super::level::AtLimit;
    use super::*;

    fn hours(hours: i64) -> Units {
        Units::of_hours(hours).unwrap()
    }

    fn allocation(floating: i64, own: &[(&str, i64)]) -> Allocation {
        let own = own.iter().map(|(name, units)| ((*name).to_owned(), hours(*units)));
        Allocation { floating: Limit::At(hours(floating)), clusters: own.collect() }
    }

    fn usage(used: &[(&str, Option<i64>)]) -> Usage {
        used.iter().map(|(name, used)| ((*name).to_owned(), used.map(hours))).collect()
    }

    fn standing(allocation: &Allocation, used: &[(&str, Option<i64>)]) -> Standing {
        Standing::new(allocation, &usage(used), &Levels::default())
    }

    #[test]
    fn b10_b12_an_account_is_over_when_it_used_more_than_its_limit() {
        let limit = allocation(10_000, &[]);
        let at = standing(&limit, &[("dev", Some(10_000))]);
        assert_eq!((at.level, at.over.len()), (Some(Level::Upper), 0));
        assert_eq!((at.left(), at.share()), (Some(Units::ZERO), Some(1.0)));
        let beyond = standing(&limit, &[("dev", Some(10_001))]);
        assert_eq!((beyond.level, beyond.over), (Some(Level::Over), vec!["dev".to_owned()]));
        // Use of all clusters is added up, and all are over.
        let two = standing(&limit, &[("a", Some(6000)), ("b", Some(4001)), ("c", Some(0))]);
        assert_eq!(two.over, ["a", "b", "c"]);
    }

    #[test]
    fn a_second_beyond_the_limit_is_beyond_it() {
        let limit = allocation(10_000, &[]);
        let used = [("dev".to_owned(), Some(Units::new(36_000_001)))].into();
        assert_eq!(Standing::new(&limit, &used, &Levels::default()).over, ["dev"]);
        let inclusive = Levels { at_limit: AtLimit::Inclusive, ..Levels::default() };
        let used = usage(&[("dev", Some(10_000))]);
        assert_eq!(Standing::new(&limit, &used, &inclusive).over, ["dev"]);
    }

    #[test]
    fn b17_what_has_no_limit_is_never_over() {
        let unlimited = Allocation { floating: Limit::Unlimited, clusters: BTreeMap::new() };
        let standing = standing(&unlimited, &[("dev", Some(1_000_000))]);
        assert_eq!((standing.level, standing.over.len()), (None, 0));
        assert_eq!((standing.left(), standing.share()), (None, None));
    }

    #[test]
    fn a_silent_cluster_is_not_one_without_use() {
        let limit = allocation(10_000, &[]);
        assert_eq!(standing(&limit, &[]).left(), None, "an account that Slurm does not have");
        let some = standing(&limit, &[("a", Some(9000)), ("b", None)]);
        assert_eq!((some.level, some.complete), (Some(Level::Upper), false));
        assert_eq!((some.left(), some.share()), (None, None));
        let none = standing(&limit, &[("a", None)]);
        assert_eq!((none.level, none.over.len(), none.complete), (None, 0, false));
        // What is known is too much already, whatever the other says.
        assert_eq!(standing(&limit, &[("a", Some(10_001)), ("b", None)]).over, ["a", "b"]);
    }

    #[test]
    fn b32_to_b35_a_clusters_own_part_goes_first_and_then_the_floating_one() {
        let both = allocation(25_000, &[("smp", 10_000)]);
        assert_eq!(standing(&both, &[("smp", Some(11_100))]).over.len(), 0);
        assert_eq!(standing(&both, &[("smp", Some(35_000))]).over.len(), 0);
        assert_eq!(
            standing(&both, &[("smp", Some(35_001)), ("gpu", Some(0))]).over,
            ["gpu", "smp"]
        );
        // Only the overdrawn cluster is held.
        let own = allocation(0, &[("smp", 100), ("gpu", 100)]);
        let one = standing(&own, &[("smp", Some(101)), ("gpu", Some(5))]);
        assert_eq!((one.over, one.level), (vec!["smp".to_owned()], Some(Level::Over)));
        let near = standing(&own, &[("smp", Some(95)), ("gpu", Some(0))]);
        assert_eq!(near.level, Some(Level::Upper), "of its own part");
    }

    #[test]
    fn a_limit_of_nothing_is_reached_by_the_first_job() {
        let nothing = allocation(0, &[]);
        assert_eq!(standing(&nothing, &[("dev", Some(0))]).level, None);
        assert_eq!(standing(&nothing, &[("dev", Some(1))]).over, ["dev"]);
    }
}
