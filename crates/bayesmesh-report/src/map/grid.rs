//! Where the values of a map lie, and which part of the drawing their cells fill.

/// The cells of a map of the whole globe: rows at even distances from north to south, columns at
/// even distances from 0° eastwards. A value stands in the middle of its cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MapGrid {
    rows: usize,
    columns: usize,
    /// Latitude of the first row in degrees.
    north: f64,
    /// Degrees from a row to the next.
    step: f64,
}

impl MapGrid {
    /// Rows at `latitudes` in degrees, north first, and so many columns. Latitudes that do not fall
    /// from north to south are taken as those of [`MapGrid::global`].
    pub fn new(latitudes: &[f64], longitudes: usize) -> Self {
        let global = Self::global(latitudes.len(), longitudes);
        let on_globe = |latitude: f64| (-90.5..=90.5).contains(&latitude);
        match latitudes {
            &[north, .., south] if on_globe(north) && on_globe(south) && north > south => {
                Self { north, step: (north - south) / (latitudes.len() - 1) as f64, ..global }
            }
            _ => global,
        }
    }

    /// Rows from pole to pole: an odd number of them begins at the pole, an even number half a step
    /// from it.
    pub fn global(latitudes: usize, longitudes: usize) -> Self {
        let with_poles = latitudes % 2 == 1 && latitudes > 1;
        let step = 180.0 / (latitudes - usize::from(with_poles)).max(1) as f64;
        let north = if with_poles { 90.0 } else { 90.0 - step / 2.0 };
        Self { rows: latitudes, columns: longitudes, north, step }
    }

    /// Number of values of a field, `None` if it has none.
    pub(crate) fn cells(&self) -> Option<usize> {
        self.rows.checked_mul(self.columns).filter(|&cells| cells > 0)
    }

    /// Number of rows.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// The columns of the drawing, from west to east, as columns of a field. The drawing has its
    /// middle at 0°. Where the antimeridian cuts a column, it is there on both sides.
    pub(crate) fn columns(&self) -> impl Iterator<Item = usize> + Clone {
        let half = (self.columns / 2) as isize;
        let columns = self.columns as isize;
        (-half..=half).map(move |column| column.rem_euclid(columns.max(1)) as usize)
    }

    /// Degrees from a column to the next.
    fn column_step(&self) -> f64 {
        360.0 / self.columns.max(1) as f64
    }

    /// Longitude of the place `column` of the drawing, which need not be whole.
    pub(crate) fn longitude(&self, column: f64) -> f64 {
        (column - (self.columns / 2) as f64) * self.column_step()
    }

    /// Latitude of the place `row`, which need not be whole.
    pub(crate) fn latitude(&self, row: f64) -> f64 {
        self.north - row * self.step
    }

    /// Left, top, width and height of the cells as shares of the drawing, which reaches from 180°
    /// west to 180° east and from pole to pole.
    pub(crate) fn placement(&self) -> [f64; 4] {
        let width = (2 * (self.columns / 2) + 1) as f64 * self.column_step();
        let top = 90.0 - self.latitude(-0.5);
        let height = self.rows as f64 * self.step;
        [(180.0 + self.longitude(-0.5)) / 360.0, top / 180.0, width / 360.0, height / 180.0]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_reach_from_pole_to_pole() {
        let grid = MapGrid::global(121, 240);
        assert_eq!((grid.latitude(0.0), grid.latitude(120.0)), (90.0, -90.0));
        assert_eq!(
            grid,
            MapGrid::new(&(0..121).map(|i| 90.0 - 1.5 * f64::from(i)).collect::<Vec<_>>(), 240)
        );
        let grid = MapGrid::global(32, 64);
        assert_eq!((grid.latitude(-0.5), grid.latitude(31.5)), (90.0, -90.0));
    }

    #[test]
    fn cells_cover_the_drawing_and_overlap_at_the_antimeridian() {
        for (rows, columns) in [(121, 240), (32, 64), (73, 144), (1, 1), (2, 5), (3, 7)] {
            let grid = MapGrid::global(rows, columns);
            let [left, top, width, height] = grid.placement();
            assert!(left < 1e-12 && left + width > 1.0 - 1e-12, "{rows}×{columns}");
            assert!(top < 1e-12 && top + height > 1.0 - 1e-12, "{rows}×{columns}");
            let drawn: Vec<usize> = grid.columns().collect();
            let zero = drawn.iter().position(|&c| c == 0).expect("column 0");
            assert_eq!(grid.longitude(zero as f64), 0.0);
            assert_eq!(drawn.len(), columns / 2 * 2 + 1);
        }
        let drawn: Vec<usize> = MapGrid::global(2, 4).columns().collect();
        assert_eq!(drawn, [2, 3, 0, 1, 2]);
    }

    #[test]
    fn latitudes_that_make_no_sense_are_those_of_the_globe() {
        for latitudes in [[-90.0, 90.0], [f64::NAN, 0.0], [900.0, -900.0], [5.0, 5.0]] {
            assert_eq!(MapGrid::new(&latitudes, 8), MapGrid::global(2, 8));
        }
        assert_eq!(MapGrid::new(&[], 8).cells(), None);
        assert_eq!(MapGrid::new(&[0.0], 0).cells(), None);
        assert_eq!(MapGrid::global(usize::MAX, 2).cells(), None);
    }
}
