//! Numbers of examples, from all ranks.

use bayesmesh_comm::{MeshComm, Operation, Reduce};

use crate::error::{Error, Result};

/// Numbers of every example, which each rank fills in for its own and leaves zero for the others.
pub(super) struct Table {
    columns: usize,
    cells: Vec<f64>,
}

impl Table {
    pub fn new(rows: usize, columns: usize) -> Self {
        Self { columns, cells: vec![0.0; rows * columns] }
    }

    pub fn fill(&mut self, rows: &[usize], values: Vec<f64>) -> Result<()> {
        let columns = self.columns;
        if values.len() != rows.len() * columns {
            return Err(Error::Mismatch(format!(
                "{} numbers for {} examples; a row of the table has {columns}",
                values.len(),
                rows.len()
            )));
        }
        for (i, row) in rows.iter().enumerate() {
            let values = &values[i * columns..][..columns];
            self.cells[row * columns..][..columns].copy_from_slice(values);
        }
        Ok(())
    }

    pub fn merged_on(mut self, mesh: &MeshComm) -> Result<Vec<f64>> {
        mesh.world.all_reduce_f64(&mut self.cells, Operation::Sum, Reduce::Reproducible)?;
        Ok(self.cells)
    }
}
