//! A prediction as its calibration shows it.

use std::ops::Range;
use std::sync::Arc;

use super::LevelMap;

/// What a prediction of values is seen through: levels of each output, levels of whole vectors, and
/// how the noise of outputs hangs together.
#[derive(Clone, Debug, PartialEq)]
pub struct Lens {
    /// One for all outputs, one for each, or one for each output of each row.
    maps: Vec<LevelMap>,
    /// From levels of single outputs to those of whole vectors: one for all rows, one for each, or
    /// none.
    bands: Vec<LevelMap>,
    /// The lower triangular root of the correlation of the noise, `[outputs, outputs]`; empty where
    /// it is not known.
    root: Arc<[f64]>,
}

impl Lens {
    pub(super) fn new(maps: Vec<LevelMap>, bands: Vec<LevelMap>, root: Arc<[f64]>) -> Self {
        Self { maps, bands, root }
    }

    /// Those of several rows, each with its own, one after the other.
    pub(crate) fn of_each_row(rows: Vec<Self>) -> Option<Self> {
        let root = Arc::clone(&rows.first()?.root);
        let (mut maps, mut bands) = (Vec::new(), Vec::new());
        for row in rows {
            maps.extend(row.maps);
            bands.extend(row.bands);
        }
        Some(Self { maps, bands, root })
    }

    /// The map of a (row, output) pair, counted row by row.
    pub(crate) fn map(&self, cell: usize) -> &LevelMap {
        &self.maps[cell % self.maps.len()]
    }

    /// The map from levels of outputs to those of whole vectors, for a row.
    pub(crate) fn band(&self, row: usize) -> Option<&LevelMap> {
        self.bands.get(row % self.bands.len().max(1))
    }

    pub(crate) fn root(&self) -> &[f64] {
        &self.root
    }

    /// The lens of some rows.
    #[must_use]
    pub(crate) fn of_rows(&self, rows: Range<usize>, outputs: usize) -> Self {
        let own = |maps: &[LevelMap], each: usize| match maps.len() > each {
            true => maps[rows.start * each..rows.end * each].to_vec(),
            false => maps.to_vec(),
        };
        let bands = own(&self.bands, 1);
        Self { maps: own(&self.maps, outputs), bands, root: Arc::clone(&self.root) }
    }
}
