//! What a node has of its generic resources, and how much of it jobs hold.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::slurm::ParseError;
use crate::slurm::gres::{self, Gres};

/// The kind of generic resource that GPUs are; MIG slices are GPUs of a type of their own.
pub const GPU: &str = "gpu";

/// One kind and type of generic resource on a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stock {
    /// `gpu`, `shard`, `craynetwork`, …
    pub kind: Arc<str>,
    /// Its type, such as `a100` or the MIG profile `a100_1g.5gb`; empty where Slurm states none.
    pub model: Arc<str>,
    /// How many the node has.
    pub total: u64,
    /// How many of them jobs hold, as Slurm says it; may be more than `total` for a moment.
    pub used: u64,
}

impl Stock {
    /// Whether these are GPUs.
    #[must_use]
    pub fn is_gpu(&self) -> bool {
        &*self.kind == GPU
    }
}

/// Reads what a node has (`gpu:a100:4(S:0-1),shard:16`) and what of it is in use
/// (`gpu:a100:2(IDX:0-1)`). Kinds of which the node has none (`gpu:0`) are left out.
///
/// Slurm may state the type in one list and not in the other: use without a type that the node
/// has, or beyond what it has of it, is counted with other types of the same kind.
///
/// # Errors
/// If one of the texts is no list of generic resources.
pub fn parse(has: &str, used: &str) -> Result<Vec<Stock>, ParseError> {
    let mut stocks: BTreeMap<(Arc<str>, Arc<str>), Stock> = BTreeMap::new();
    for item in gres::parse(has)?.into_iter().filter(|item| item.count > 0) {
        let (kind, model) = key(&item);
        let stock = stocks.entry((Arc::clone(&kind), Arc::clone(&model))).or_insert(Stock {
            kind,
            model,
            total: 0,
            used: 0,
        });
        stock.total = stock.total.saturating_add(item.count);
    }
    for item in gres::parse(used)?.into_iter().filter(|item| item.count > 0) {
        let (kind, model) = key(&item);
        let mut left = item.count;
        // Its own type first, then the others that have room, then its own or the first again.
        if let Some(stock) = stocks.get_mut(&(Arc::clone(&kind), model)) {
            left = fill(stock, left);
        }
        for stock in stocks.values_mut().filter(|stock| stock.kind == kind) {
            left = fill(stock, left);
        }
        if left > 0
            && let Some(stock) = stocks.values_mut().find(|stock| stock.kind == kind)
        {
            stock.used = stock.used.saturating_add(left);
        }
    }
    Ok(stocks.into_values().collect())
}

fn key(item: &Gres) -> (Arc<str>, Arc<str>) {
    (Arc::from(item.name.as_str()), Arc::from(item.model.as_deref().unwrap_or_default()))
}

/// Counts as much as there is room for; gives what is left.
fn fill(stock: &mut Stock, amount: u64) -> u64 {
    let taken = amount.min(stock.total.saturating_sub(stock.used));
    stock.used += taken;
    amount - taken
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(has: &str, used: &str) -> Vec<(String, String, u64, u64)> {
        let stocks = parse(has, used).unwrap();
        let show = |s: Stock| (s.kind.to_string(), s.model.to_string(), s.total, s.used);
        stocks.into_iter().map(show).collect()
    }

    fn one(kind: &str, model: &str, total: u64, used: u64) -> (String, String, u64, u64) {
        (kind.to_owned(), model.to_owned(), total, used)
    }

    #[test]
    fn e1_typed_gpus_all_in_use() {
        let read = read("gpu:rtx8000:8(S:0-1)", "gpu:rtx8000:8(IDX:0-7)");
        assert_eq!(read, [one("gpu", "rtx8000", 8, 8)]);
    }

    #[test]
    fn e4_none_is_no_series() {
        for (has, used) in [("(null)", "gpu:0"), ("gpu:0", "gpu:0"), ("", ""), ("", "gpu:0")] {
            assert_eq!(read(has, used), [], "{has:?} {used:?}");
        }
    }

    #[test]
    fn types_mig_slices_and_shards() {
        assert_eq!(
            read(
                "gpu:a100:3(S:0-1),gpu:a100_1g.5gb:7(S:1),shard:a100:12(S:0-1)",
                "gpu:a100:2(IDX:0-1),gpu:a100_1g.5gb:3(IDX:3-5),shard:a100:4(0/4,4/4,0/4)"
            ),
            [
                one("gpu", "a100", 3, 2),
                one("gpu", "a100_1g.5gb", 7, 3),
                one("shard", "a100", 12, 4)
            ]
        );
        assert_eq!(read("gpu:4", "gpu:1(IDX:3)"), [one("gpu", "", 4, 1)]);
    }

    #[test]
    fn use_that_is_stated_without_its_type_is_not_lost() {
        assert_eq!(
            read("gpu:a100:2,gpu:v100:4", "gpu:5"),
            [one("gpu", "a100", 2, 2), one("gpu", "v100", 4, 3)]
        );
        assert_eq!(read("gpu:4", "gpu:a100:3"), [one("gpu", "", 4, 3)]);
        // More than there is: kept as Slurm says it.
        assert_eq!(read("gpu:a100:2", "gpu:a100:3"), [one("gpu", "a100", 2, 3)]);
    }
}
