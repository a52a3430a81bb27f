//! The range of values that the colours of a map stand for.

use super::MapScale;

/// The share of the values at either end that have the colour of the end.
const OUTER: f64 = 0.001;

/// The values of the first and the last colour.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Range {
    pub(crate) from: f64,
    pub(crate) to: f64,
    /// Whether some values are less than `from`.
    pub(crate) below: bool,
    /// Whether some values are greater than `to`.
    pub(crate) above: bool,
}

impl Range {
    /// The range for all of `values`, or `None` if none of them is finite.
    pub(crate) fn new(scale: MapScale, values: impl Iterator<Item = f32>) -> Option<Self> {
        let mut values: Vec<f32> = values.filter(|value| value.is_finite()).collect();
        let (least, greatest) = extremes(values.iter().copied())?;
        let (from, to) = match scale {
            MapScale::Value => {
                let (mut from, mut to) = outer(&mut values, least, greatest);
                // A range that nearly reaches zero reaches it.
                if least >= 0.0 && from < 0.1 * to {
                    from = 0.0;
                }
                // Single precision tells no smaller differences.
                if to - from <= 1e-7 * to.abs() {
                    let half = positive(0.1 * to.abs());
                    (from, to) = (from - half, to + half);
                }
                (from, to)
            }
            MapScale::Spread => (0.0, positive(outer(&mut values, 0.0, greatest).1)),
            MapScale::SignedValue | MapScale::Error => {
                values.iter_mut().for_each(|value| *value = value.abs());
                let size = positive(outer(&mut values, 0.0, greatest.max(-least)).1);
                (-size, size)
            }
        };
        Some(Self { from, to, below: least < from, above: greatest > to })
    }

    /// Where `value` lies between both ends: 0 to 1. `None` for a value that is not finite.
    pub(crate) fn place(&self, value: f32) -> Option<f64> {
        let place = (f64::from(value) - self.from) / (self.to - self.from);
        value.is_finite().then(|| place.clamp(0.0, 1.0))
    }
}

/// The least and the greatest of the finite `values`.
pub(crate) fn extremes(values: impl Iterator<Item = f32>) -> Option<(f64, f64)> {
    let finite = values.filter(|value| value.is_finite()).map(f64::from);
    finite.fold(None, |extremes, value| {
        let (least, greatest) = extremes.unwrap_or((value, value));
        Some((value.min(least), value.max(greatest)))
    })
}

/// Both ends without the outermost of `values`, which lie between `least` and `greatest`. An end
/// that would hardly be farther out with them includes them. There must be a value.
fn outer(values: &mut [f32], least: f64, greatest: f64) -> (f64, f64) {
    let (from, to) = (quantile(values, OUTER), quantile(values, 1.0 - OUTER));
    let near = 0.05 * (to - from);
    let from = if from - least <= near { least } else { from };
    (from, if greatest - to <= near { greatest } else { to })
}

/// The value that the share `level` of `values` does not exceed.
fn quantile(values: &mut [f32], level: f64) -> f64 {
    let index = (level * (values.len() - 1) as f64).round() as usize;
    let (_, value, _) = values.select_nth_unstable_by(index, f32::total_cmp);
    f64::from(*value)
}

/// The end of a range from zero: a field of zeros has one as well.
fn positive(size: f64) -> f64 {
    if size > 0.0 { size } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(scale: MapScale, values: &[f32]) -> Range {
        Range::new(scale, values.iter().copied()).expect("values")
    }

    #[test]
    fn every_scale_has_its_ends() {
        let values = [-2.0, f32::NAN, 5.0, f32::INFINITY];
        let ends = |scale| {
            let Range { from, to, .. } = range(scale, &values);
            (from, to)
        };
        assert_eq!(ends(MapScale::Value), (-2.0, 5.0));
        assert_eq!(ends(MapScale::Spread), (0.0, 5.0));
        assert_eq!(ends(MapScale::SignedValue), (-5.0, 5.0));
        assert_eq!(ends(MapScale::Error), (-5.0, 5.0));
        assert!(range(MapScale::Spread, &values).below);
        assert_eq!(Range::new(MapScale::Value, [f32::NAN].into_iter()), None);
    }

    #[test]
    fn an_outlier_does_not_take_the_colours_of_the_others() {
        let mut values: Vec<f32> = (0..10_000).map(|i| i as f32 / 10_000.0 - 0.5).collect();
        values.push(1e6);
        let range = range(MapScale::Value, &values);
        assert!(range.to < 0.5 && range.above, "{range:?}");
        // At the other end the outermost values are near.
        assert!(range.from == -0.5 && !range.below, "{range:?}");
        assert_eq!(range.place(1e6), Some(1.0));
        assert_eq!(range.place(f32::NEG_INFINITY), None);
    }

    #[test]
    fn a_range_that_nearly_reaches_zero_reaches_it() {
        assert_eq!(range(MapScale::Value, &[0.5, 20.0]).from, 0.0);
        assert_eq!(range(MapScale::Value, &[250.0, 310.0]).from, 250.0);
        assert_eq!(range(MapScale::Value, &[-0.5, 20.0]).from, -0.5);
    }

    #[test]
    fn a_constant_has_a_range() {
        for value in [0.0, 273.15, -1e38, 1e-45, f32::MAX] {
            for scale in [MapScale::Value, MapScale::SignedValue, MapScale::Spread, MapScale::Error]
            {
                let range = range(scale, &[value; 3]);
                assert!(range.to > range.from, "{range:?} of {value}");
                assert!(range.place(value).is_some_and(f64::is_finite));
            }
        }
    }
}
