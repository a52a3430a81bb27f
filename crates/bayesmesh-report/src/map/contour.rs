//! Lines of equal value on a grid of points, by marching squares.

/// A crossing of the line with an edge between two points has no more neighbours than this: the
/// crossings it is joined to in the two squares that share the edge.
const MOST: usize = 2;

/// The lines that part what is at least `level` from what is less, on a grid of `width` points to a
/// row, in grid coordinates (column, row). Lines that end at the border are open; the others end
/// where they begin. Values that are not finite count as less.
pub(crate) fn contour(values: &[f32], width: usize, level: f32) -> Vec<Vec<(f64, f64)>> {
    let crossings = Crossings::new(values, width, level);
    let mut neighbours = crossings.joined();
    let mut lines = Vec::new();
    // Lines with ends first: what is left after them are rings.
    for ends in [true, false] {
        for start in 0..neighbours.len() {
            let degree = neighbours[start].iter().flatten().count();
            if degree == 0 || (ends && degree == MOST) {
                continue;
            }
            let edges = follow(&mut neighbours, start);
            lines.push(edges.into_iter().map(|edge| crossings.point(edge)).collect());
        }
    }
    lines
}

/// Walks from `start` as far as crossings are joined and takes the joints away.
fn follow(neighbours: &mut [[Option<usize>; MOST]], start: usize) -> Vec<usize> {
    let mut line = vec![start];
    let mut at = start;
    while let Some(next) = neighbours[at].iter_mut().find_map(Option::take) {
        if let Some(back) = neighbours[next].iter_mut().find(|joint| **joint == Some(at)) {
            *back = None;
        }
        line.push(next);
        at = next;
    }
    line
}

/// The edges of the grid. Edge `2 p` leads from point `p` to the next of its row, edge `2 p + 1` to
/// the point below.
struct Crossings<'a> {
    values: &'a [f32],
    width: usize,
    level: f32,
}

impl<'a> Crossings<'a> {
    fn new(values: &'a [f32], width: usize, level: f32) -> Self {
        Self { values, width, level }
    }

    fn value(&self, point: usize) -> f32 {
        Some(self.values[point]).filter(|value| value.is_finite()).unwrap_or(f32::MIN)
    }

    fn is_inside(&self, point: usize) -> bool {
        self.value(point) >= self.level
    }

    /// Which crossings are joined, for each edge.
    fn joined(&self) -> Vec<[Option<usize>; MOST]> {
        let mut neighbours = vec![[None; MOST]; 2 * self.values.len()];
        let rows = self.values.len().checked_div(self.width).unwrap_or(0);
        for row in 1..rows {
            for column in 1..self.width {
                let below = row * self.width + column - 1;
                for (a, b) in self.square(below - self.width, below) {
                    for (from, to) in [(a, b), (b, a)] {
                        if let Some(free) = neighbours[from].iter_mut().find(|n| n.is_none()) {
                            *free = Some(to);
                        }
                    }
                }
            }
        }
        neighbours
    }

    /// The pieces of line in the square whose left points are `above` and `below`.
    fn square(&self, above: usize, below: usize) -> Vec<(usize, usize)> {
        let (top, bottom, left, right) = (2 * above, 2 * below, 2 * above + 1, 2 * above + 3);
        let corners = [above, above + 1, below + 1, below];
        let [nw, ne, se, sw] = corners.map(|point| self.is_inside(point));
        // The edges in the order of the corners: each lies between a corner and the next.
        let sides = [(top, nw != ne), (right, ne != se), (bottom, se != sw), (left, sw != nw)];
        let crossed: Vec<usize> = sides.iter().filter(|side| side.1).map(|side| side.0).collect();
        match crossed[..] {
            [a, b] => vec![(a, b)],
            [_, _, _, _] => {
                // A saddle: the value in the middle tells which two corners belong together.
                let mean =
                    corners.map(|point| f64::from(self.value(point))).iter().sum::<f64>() / 4.0;
                if (mean >= f64::from(self.level)) == nw {
                    vec![(top, right), (bottom, left)]
                } else {
                    vec![(top, left), (bottom, right)]
                }
            }
            _ => Vec::new(),
        }
    }

    /// Where the line crosses `edge`.
    fn point(&self, edge: usize) -> (f64, f64) {
        let (from, is_down) = (edge / 2, edge % 2 == 1);
        let to = from + if is_down { self.width } else { 1 };
        let (a, b) = (f64::from(self.value(from)), f64::from(self.value(to)));
        let share = ((f64::from(self.level) - a) / (b - a)).clamp(0.0, 1.0);
        let (column, row) = ((from % self.width) as f64, (from / self.width) as f64);
        if is_down { (column, row + share) } else { (column + share, row) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Area inside a ring, positive or negative as it turns.
    fn area(ring: &[(f64, f64)]) -> f64 {
        ring.windows(2).map(|p| p[0].0 * p[1].1 - p[1].0 * p[0].1).sum::<f64>() / 2.0
    }

    #[test]
    fn an_island_is_a_ring_around_it() {
        let mut values = [0.0; 25];
        values[12] = 1.0;
        let lines = contour(&values, 5, 0.5);
        assert_eq!(lines.len(), 1);
        assert_eq!(lines[0].len(), 5);
        assert_eq!(lines[0].first(), lines[0].last());
        assert_eq!(area(&lines[0]).abs(), 0.5);
    }

    #[test]
    fn a_circle_has_its_radius() {
        let (width, radius) = (41, 15.3);
        let value = |i: usize| {
            let (x, y) = ((i % width) as f64 - 20.0, (i / width) as f64 - 20.0);
            (radius - x.hypot(y)) as f32
        };
        let values: Vec<f32> = (0..width * width).map(value).collect();
        let lines = contour(&values, width, 0.0);
        assert_eq!(lines.len(), 1);
        for (x, y) in &lines[0] {
            let found = (x - 20.0).hypot(y - 20.0);
            assert!((found - radius).abs() < 0.02, "{found}");
        }
    }

    #[test]
    fn a_coast_across_the_map_is_open_and_lies_between_the_values() {
        let lines = contour(&[0.0, 0.0, 0.0, 2.0, 2.0, 2.0], 3, 0.5);
        assert_eq!(lines, [[(0.0, 0.25), (1.0, 0.25), (2.0, 0.25)]]);
    }

    #[test]
    fn a_saddle_goes_by_its_mean() {
        // Islands that touch at a corner: apart if the middle is sea, one if it is land.
        let islands = |land: f32| {
            let mut values = [0.0; 16];
            (values[5], values[10]) = (land, land);
            contour(&values, 4, 0.5).len()
        };
        assert_eq!(islands(0.9), 2);
        assert_eq!(islands(1.2), 1);
    }

    #[test]
    fn nothing_to_part_has_no_line() {
        assert!(contour(&[], 0, 0.5).is_empty());
        assert!(contour(&[1.0], 1, 0.5).is_empty());
        assert!(contour(&[1.0; 12], 4, 0.5).is_empty());
        assert!(contour(&[f32::NAN; 12], 4, 0.5).is_empty());
        assert!(contour(&[0.0, 1.0, 0.0], 3, 0.5).is_empty());
        let lines = contour(&[f32::NAN, 1.0, f32::NAN, 1.0], 2, 0.5);
        assert!(lines[0].iter().all(|(x, y)| x.is_finite() && y.is_finite()), "{lines:?}");
    }
}
