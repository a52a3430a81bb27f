//! Coastlines.

use super::contour::contour;
use super::grid::MapGrid;
use crate::plot::path::Path;

/// Coasts of the Earth as the data of an SVG path in degrees east and south: the land of Natural
/// Earth 4.1, 1:50m, which is in the public domain. Lines are simplified to a quarter of a degree,
/// islands of less than 0.6 square degrees are left out.
const EARTH: &str = include_str!("earth.path");

/// The coastline over the maps of a [`super::MapSeries`].
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Coast {
    /// None, e.g. for a planet that has no land.
    #[default]
    None,
    /// That of the Earth, for data without a mask.
    Earth,
    /// Where the share of land, `[latitudes, longitudes]` on the grid of the maps, is one half.
    Mask(Vec<f32>),
}

impl Coast {
    /// The data of an SVG path in degrees east and south; empty if there is no coast.
    pub(crate) fn path(&self, grid: &MapGrid) -> String {
        match self {
            Self::Mask(mask) if grid.cells() == Some(mask.len()) => masked(mask, grid),
            Self::None | Self::Mask(_) => String::new(),
            Self::Earth => EARTH.trim_end().replace('\n', " "),
        }
    }
}

fn masked(mask: &[f32], grid: &MapGrid) -> String {
    let columns = grid.columns();
    let width = columns.clone().count();
    let rows = mask.chunks(mask.len() / grid.rows());
    let drawn: Vec<f32> = rows.flat_map(|row| columns.clone().map(|column| row[column])).collect();
    let mut path = Path::default();
    for line in contour(&drawn, width, 0.5) {
        let degrees = |(column, row)| (grid.longitude(column), -grid.latitude(row));
        path.polyline(smooth(&line).into_iter().map(degrees));
    }
    path.finish()
}

/// The line without the stairs that a mask of zeros and ones makes of a slope. Small islands stay
/// as they are: they would shrink.
fn smooth(line: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let last = line.len() - 1;
    if line.len() < 8 {
        return line.to_vec();
    }
    let is_ring = line.first() == line.last();
    let mean = |a: f64, b: f64, c: f64| (a + 2.0 * b + c) / 4.0;
    let point = |i: usize| {
        let (before, after) = match i {
            0 if is_ring => (last - 1, 1),
            i if i == last && is_ring => (last - 1, 1),
            0 => (0, 0),
            i if i == last => (last, last),
            i => (i - 1, i + 1),
        };
        let (a, b, c) = (line[before], line[i], line[after]);
        (mean(a.0, b.0, c.0), mean(a.1, b.1, c.1))
    };
    (0..line.len()).map(point).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of a path with absolute coordinates.
    fn numbers(path: &str) -> Vec<f64> {
        let parts = path.split(|c: char| !(c.is_ascii_digit() || c == '.' || c == '-'));
        parts.filter(|part| !part.is_empty()).map(|part| part.parse().expect("number")).collect()
    }

    #[test]
    fn land_lies_where_the_mask_has_it() {
        // Land between 45° and 135° east, south of 45° north.
        let grid = MapGrid::global(4, 8);
        let is_land = |i: u8| (1..=3).contains(&(i % 8)) && i >= 8;
        let mask = (0..32).map(|i| f32::from(u8::from(is_land(i)))).collect();
        let path = Coast::Mask(mask).path(&grid);
        let numbers = numbers(&path);
        let (mut east, mut south): (Vec<f64>, Vec<f64>) = (Vec::new(), Vec::new());
        for pair in numbers.chunks(2) {
            east.push(pair[0]);
            south.push(pair[1]);
        }
        let least = |values: &[f64]| values.iter().copied().fold(f64::INFINITY, f64::min);
        let greatest = |values: &[f64]| values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        assert_eq!((least(&east), greatest(&east)), (22.5, 157.5));
        assert_eq!(least(&south), -45.0);
    }

    #[test]
    fn a_mask_without_land_or_of_another_size_has_no_coast() {
        let grid = MapGrid::global(3, 4);
        for mask in [vec![0.0; 12], vec![1.0; 12], vec![f32::NAN; 12], vec![0.0, 1.0], Vec::new()] {
            assert_eq!(Coast::Mask(mask).path(&grid), "");
        }
        assert_eq!(Coast::Mask(vec![1.0]).path(&MapGrid::global(1, 1)), "");
        assert_eq!(Coast::None.path(&grid), "");
    }

    #[test]
    fn the_coast_of_the_earth_is_a_path_on_the_globe() {
        let path = Coast::Earth.path(&MapGrid::global(1, 1));
        assert!(path.starts_with('M') && path.len() < 30_000);
        assert!(path.chars().all(|c| "Mlz-. 0123456789".contains(c)));
        // Where each line begins; what follows is relative.
        for line in path.split('M').skip(1) {
            let (start, _) = line.split_once('l').expect("a line");
            let start = numbers(&start.replace('-', " -"));
            assert!(start[0].abs() <= 180.0 && start[1].abs() <= 90.0, "{line}");
        }
    }

    #[test]
    fn stairs_become_slopes_and_ends_stay() {
        let stairs: Vec<(f64, f64)> = (0..20).map(|i| (f64::from(i), f64::from(i % 2))).collect();
        let line = smooth(&stairs);
        assert_eq!((line[0], line[19]), (stairs[0], stairs[19]));
        assert!(line[1..19].iter().all(|&(_, y)| y == 0.5));
    }
}
