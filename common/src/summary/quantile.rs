//! Medians of many values in little memory.

/// Values kept one by one until there are this many.
const FEW: usize = 1024;
/// A bucket of the histogram is 1/128 of its octave wide, so a value is right to 0.4 %.
const FINE_BITS: u32 = 7;
const FINE: u32 = 1 << FINE_BITS;
/// Octaves of a `u32` above the exact part, and that part.
const BUCKETS: usize = ((32 - FINE_BITS as usize) + 1) << FINE_BITS;

/// Waiting times in seconds: their mean exactly, their median exactly up to a thousand of them
/// and to 0.4 % beyond, in memory that does not grow with their number.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Waits {
    count: u64,
    sum: u64,
    values: Values,
}

#[derive(Debug, Clone, PartialEq)]
enum Values {
    Few(Vec<u32>),
    Many(Box<[u32]>),
}

impl Default for Values {
    fn default() -> Values {
        Values::Few(Vec::new())
    }
}

impl Waits {
    /// Adds one.
    pub(super) fn add(&mut self, seconds: u32) {
        self.count += 1;
        self.sum += u64::from(seconds);
        self.put(seconds);
    }

    pub(super) fn merge(&mut self, other: &Waits) {
        self.count += other.count;
        self.sum += other.sum;
        match &other.values {
            Values::Few(values) => values.iter().for_each(|value| self.put(*value)),
            Values::Many(theirs) => {
                for (ours, theirs) in self.many().iter_mut().zip(theirs) {
                    *ours += theirs;
                }
            }
        }
    }

    fn put(&mut self, seconds: u32) {
        match &mut self.values {
            Values::Few(values) if values.len() < FEW => values.push(seconds),
            _ => {
                if let Some(count) = self.many().get_mut(bucket(seconds)) {
                    *count += 1;
                }
            }
        }
    }

    /// The histogram; made of the single values if it is not there yet.
    fn many(&mut self) -> &mut [u32] {
        if let Values::Few(values) = &self.values {
            let mut counts = vec![0; BUCKETS].into_boxed_slice();
            for value in values {
                if let Some(count) = counts.get_mut(bucket(*value)) {
                    *count += 1;
                }
            }
            self.values = Values::Many(counts);
        }
        match &mut self.values {
            Values::Many(counts) => counts,
            Values::Few(_) => &mut [],
        }
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Their mean in seconds.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// Their median in seconds.
    #[must_use]
    pub fn median(&self) -> Option<f64> {
        match &self.values {
            Values::Few(values) => median(&mut values.clone()),
            Values::Many(counts) => quantile(counts, self.count, 0.5, middle),
        }
    }
}

fn median(values: &mut [u32]) -> Option<f64> {
    let half = values.len() / 2;
    let odd = values.len() % 2 == 1;
    if values.is_empty() {
        return None;
    }
    let (below, upper, _) = values.select_nth_unstable(half);
    let upper = f64::from(*upper);
    if odd {
        return Some(upper);
    }
    below.iter().max().map(|lower| f64::midpoint(f64::from(*lower), upper))
}

/// Which bucket a value falls into: its own below 128, then 128 to each octave.
fn bucket(value: u32) -> usize {
    if value < FINE {
        return value as usize;
    }
    let shift = 31 - value.leading_zeros() - FINE_BITS;
    (((shift + 1) << FINE_BITS) + ((value >> shift) & (FINE - 1))) as usize
}

/// The middle of a bucket.
fn middle(bucket: usize) -> f64 {
    let fine = FINE as usize;
    let Some(shift) = (bucket / fine).checked_sub(1) else { return bucket as f64 };
    let width = (1u64 << shift) as f64;
    let low = (fine + bucket % fine) as f64 * width;
    low + (width - 1.0) / 2.0
}

/// The quantile of values counted in buckets, between two neighbours in proportion.
fn quantile(counts: &[u32], total: u64, q: f64, value: fn(usize) -> f64) -> Option<f64> {
    let place = total.checked_sub(1)? as f64 * q;
    let at = |rank: f64| {
        let mut seen = 0u64;
        let place = counts.iter().position(|count| {
            seen += u64::from(*count);
            seen as f64 > rank
        });
        place.map(value)
    };
    let (low, high) = (at(place.floor())?, at(place.ceil())?);
    Some(low + (high - low) * place.fract())
}

/// Steps of a [`Spread`] from 0 to 1.
const STEPS: usize = 10_000;

/// How ratios, such as the efficiencies of runs, are spread.
#[derive(Debug, Clone, PartialEq)]
pub struct Spread {
    count: u64,
    above: u64,
    sum: f64,
    min: f64,
    max: f64,
    counts: Box<[u32]>,
}

impl Default for Spread {
    fn default() -> Spread {
        let counts = vec![0; STEPS + 1].into_boxed_slice();
        Spread { count: 0, above: 0, sum: 0.0, min: f64::MAX, max: 0.0, counts }
    }
}

impl Spread {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to STEPS")]
    pub(super) fn add(&mut self, ratio: f64) {
        self.count += 1;
        self.above += u64::from(ratio > 1.0);
        let capped = if ratio < 1.0 { ratio } else { 1.0 };
        self.sum += capped;
        if ratio < self.min {
            self.min = ratio;
        }
        if ratio > self.max {
            self.max = ratio;
        }
        if let Some(count) = self.counts.get_mut((capped * STEPS as f64 + 0.5) as usize) {
            *count += 1;
        }
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// How many are above 1; they count as 1 in mean and quantiles.
    #[must_use]
    pub fn above_one(&self) -> u64 {
        self.above
    }

    /// Their plain mean, each run with the same weight.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / self.count as f64)
    }

    /// The smallest.
    #[must_use]
    pub fn min(&self) -> Option<f64> {
        (self.count > 0).then_some(self.min)
    }

    /// The largest, as measured.
    #[must_use]
    pub fn max(&self) -> Option<f64> {
        (self.count > 0).then_some(self.max)
    }

    /// The value below which the share `q` of them lies, to a ten-thousandth.
    #[must_use]
    pub fn quantile(&self, q: f64) -> Option<f64> {
        quantile(&self.counts, self.count, q, |step| step as f64 / STEPS as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn n7_three_samples() {
        let mut spread = Spread::default();
        for percent in [0.0, 50.0, 100.0] {
            spread.add(percent / 100.0);
        }
        for expected in [0.05, 0.25, 0.5, 0.75] {
            let found = spread.quantile(expected);
            assert!(found.is_some_and(|found| (found - expected).abs() < 1e-9), "{found:?}");
        }
        assert_eq!((spread.mean(), spread.min(), spread.max()), (Some(0.5), Some(0.0), Some(1.0)));
    }

    #[test]
    fn nothing_has_no_median() {
        assert_eq!((Waits::default().median(), Waits::default().mean()), (None, None));
        let empty = Spread::default();
        assert_eq!(
            (empty.mean(), empty.min(), empty.max(), empty.quantile(0.5)),
            (None, None, None, None)
        );
    }

    #[test]
    fn few_are_exact() {
        let mut waits = Waits::default();
        [7, 1, 100, 3].into_iter().for_each(|wait| waits.add(wait));
        assert_eq!((waits.median(), waits.mean()), (Some(5.0), Some(27.75)));
        waits.add(1_000_000);
        assert_eq!(waits.median(), Some(7.0));
    }

    #[test]
    fn a_bucket_holds_its_middle_and_is_narrow() {
        for value in
            (0..200).chain((0..32).map(|bit| 1u32 << bit)).chain([u32::MAX, 12_345, 86_399])
        {
            let found = middle(bucket(value));
            let wrong = (found - f64::from(value)).abs() / f64::from(value.max(1));
            assert!(bucket(value) < BUCKETS && wrong < 0.004, "{value}: {found}");
        }
    }

    #[test]
    fn many_are_right_to_less_than_half_a_percent_however_merged() {
        let values: Vec<u32> =
            (0..20_001u32).map(|i| i.wrapping_mul(2_654_435_761) % 90_000).collect();
        let exact = median(&mut values.clone()).unwrap();
        let (mut all, mut parts) = (Waits::default(), Waits::default());
        for chunk in values.chunks(1_500) {
            let mut part = Waits::default();
            chunk.iter().for_each(|value| part.add(*value));
            chunk.iter().for_each(|value| all.add(*value));
            parts.merge(&part);
        }
        assert_eq!(
            (all.median(), all.mean(), all.count()),
            (parts.median(), parts.mean(), parts.count())
        );
        assert!((all.median().unwrap() - exact).abs() < exact * 0.005, "{exact}");
    }

    #[test]
    fn more_than_one_is_counted_and_capped_in_the_mean() {
        let mut spread = Spread::default();
        [0.5, 3.0].into_iter().for_each(|ratio| spread.add(ratio));
        assert_eq!((spread.mean(), spread.max(), spread.above_one()), (Some(0.75), Some(3.0), 1));
    }
}
