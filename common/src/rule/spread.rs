//! Mean and median of a few numbers.

/// Their mean; `None` of none.
pub(super) fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Their median; of an even number, the middle between the two in the middle.
pub(super) fn median(values: &mut [f64]) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let upper = *values.get(values.len() / 2)?;
    if !values.len().is_multiple_of(2) {
        return Some(upper);
    }
    let lower = *values.get(values.len() / 2 - 1)?;
    Some(lower.midpoint(upper))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_few() {
        assert_eq!((mean(&[]), median(&mut [])), (None, None));
        assert_eq!(median(&mut [0.1, 0.05, 0.01]), Some(0.05));
        assert_eq!((mean(&[1.0, 4.0]), median(&mut [4.0, 1.0])), (Some(2.5), Some(2.5)));
    }
}
