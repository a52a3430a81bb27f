//! Thinning: no more points than the pixels can show.

use std::collections::BTreeSet;

/// Points are one pixel column when the whole part of their x is the same.
///
/// Groups `points`, whose missing values are `None`, into runs without gaps and each run into its
/// columns. A gap inside one column cannot be seen and is closed; everything left of 0 and right
/// of `width` is one column each, because it is cut off anyway.
fn runs<P: Copy>(
    points: impl IntoIterator<Item = Option<P>>,
    x: impl Fn(&P) -> f64,
    width: f64,
) -> Vec<Vec<Vec<P>>> {
    let mut runs: Vec<Vec<Vec<P>>> = Vec::new();
    let mut current = f64::NAN;
    let mut gap = true;
    for point in points {
        let Some(point) = point else {
            gap = true;
            continue;
        };
        let column = x(&point).floor().clamp(-1.0, width.ceil());
        match runs.last_mut() {
            Some(run) if column == current => {
                if let Some(points) = run.last_mut() {
                    points.push(point);
                }
            }
            Some(run) if !gap => run.push(vec![point]),
            _ => runs.push(vec![vec![point]]),
        }
        current = column;
        gap = false;
    }
    runs
}

/// A line through pixels `(x, y)`: of each pixel column at most the first, the lowest, the highest
/// and the last point remain, which draw the same pixels.
pub(crate) fn line(
    points: impl IntoIterator<Item = Option<(f64, f64)>>,
    width: f64,
) -> Vec<Vec<(f64, f64)>> {
    let reduce = |column: Vec<(f64, f64)>| {
        if column.len() <= 4 {
            return column;
        }
        let by_y = |a: &usize, b: &usize| column[*a].1.total_cmp(&column[*b].1);
        let last = column.len() - 1;
        let lowest = (0..=last).min_by(by_y).unwrap_or(0);
        let highest = (0..=last).max_by(by_y).unwrap_or(last);
        let kept = BTreeSet::from([0, lowest, highest, last]);
        kept.into_iter().map(|i| column[i]).collect()
    };
    let runs = runs(points, |p| p.0, width);
    runs.into_iter().map(|run| run.into_iter().flat_map(reduce).collect()).collect()
}

/// A band through pixels `(x, lower, upper)`: of each pixel column the hull remains.
pub(crate) fn band(
    points: impl IntoIterator<Item = Option<(f64, f64, f64)>>,
    width: f64,
) -> Vec<Vec<(f64, f64, f64)>> {
    let reduce = |column: Vec<(f64, f64, f64)>| {
        if column.len() <= 2 {
            return column;
        }
        // Pixels grow downwards, so the lower line has the greater ones.
        let lower = column.iter().map(|p| p.1).fold(f64::NEG_INFINITY, f64::max);
        let upper = column.iter().map(|p| p.2).fold(f64::INFINITY, f64::min);
        let ends = [column[0].0, column[column.len() - 1].0];
        ends.map(|x| (x, lower, upper)).to_vec()
    };
    let runs = runs(points, |p| p.0, width);
    runs.into_iter().map(|run| run.into_iter().flat_map(reduce).collect()).collect()
}

/// Dots at pixels `(x, y)`: of those that nearly coincide the first remains.
pub(crate) fn dots(points: impl IntoIterator<Item = (f64, f64)>) -> Vec<(f64, f64)> {
    const CELL: f64 = 2.5;
    let cell = |v: f64| (v / CELL).floor() as i64;
    let mut seen = BTreeSet::new();
    points.into_iter().filter(|&(x, y)| seen.insert((cell(x), cell(y)))).collect()
}

/// Bars `(left, right, top)` in pixels over `base`: of those within one pixel column the highest
/// remains.
pub(crate) fn bars(
    bars: impl IntoIterator<Item = (f64, f64, f64)>,
    base: f64,
    width: f64,
) -> Vec<(f64, f64, f64)> {
    let reduce = |column: Vec<(f64, f64, f64)>| {
        let height = |bar: &(f64, f64, f64)| (bar.2 - base).abs();
        column.into_iter().max_by(|a, b| height(a).total_cmp(&height(b)))
    };
    let runs = runs(bars.into_iter().map(Some), |bar| bar.0, width);
    runs.into_iter().flatten().filter_map(reduce).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_keeps_its_extremes_and_little_else() {
        let n = 1_000_000;
        let points = (0..n).map(|i| {
            let x = 100.0 * f64::from(i) / f64::from(n);
            let spike = if i == 543_210 { 1000.0 } else { 0.0 };
            Some((x, (x * 7.0).sin() + spike))
        });
        let runs = line(points, 100.0);
        assert_eq!(runs.len(), 1);
        assert!(runs[0].len() <= 400, "{}", runs[0].len());
        assert!(runs[0].iter().any(|p| p.1 > 999.0), "the spike is gone");
        assert!(runs[0].is_sorted_by(|a, b| a.0 <= b.0));
        assert_eq!(runs[0][0], (0.0, 0.0));
    }

    #[test]
    fn short_lines_are_untouched() {
        let points = [(0.0, 1.0), (0.2, 5.0), (0.4, 2.0), (7.0, 3.0)];
        assert_eq!(line(points.map(Some), 10.0), [points.to_vec()]);
    }

    #[test]
    fn gaps_split_a_line_unless_they_are_below_a_pixel() {
        let split = line([Some((1.0, 0.0)), None, Some((2.0, 0.0))], 10.0);
        assert_eq!(split, [vec![(1.0, 0.0)], vec![(2.0, 0.0)]]);
        let closed = line([Some((1.0, 0.0)), None, Some((1.5, 0.0))], 10.0);
        assert_eq!(closed, [vec![(1.0, 0.0), (1.5, 0.0)]]);
        assert!(line([None, None], 10.0).is_empty());
    }

    #[test]
    fn what_lies_outside_is_one_column() {
        let outside = (0..1000).map(|i| Some((-1000.0 + f64::from(i), f64::from(i))));
        assert!(line(outside, 10.0)[0].len() <= 4);
    }

    #[test]
    fn a_band_keeps_its_hull() {
        let points = (0..1000).map(|i| {
            let x = f64::from(i) / 100.0;
            Some((x, 10.0 + f64::from(i % 7), -f64::from(i % 5)))
        });
        let runs = band(points, 10.0);
        assert_eq!(runs[0].len(), 20);
        assert!(runs[0].iter().all(|p| p.1 == 16.0 && p.2 == -4.0));
    }

    #[test]
    fn coinciding_dots_and_bars_are_dropped() {
        assert_eq!(dots([(0.1, 0.1), (0.2, 0.3), (9.0, 0.1)]), [(0.1, 0.1), (9.0, 0.1)]);
        let thin = [(0.1, 0.2, 90.0), (0.2, 0.3, 40.0), (1.0, 2.0, 70.0)];
        assert_eq!(bars(thin, 100.0, 10.0), [(0.2, 0.3, 40.0), (1.0, 2.0, 70.0)]);
    }
}
