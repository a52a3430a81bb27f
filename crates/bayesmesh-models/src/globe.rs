//! What networks on the globe have in common.

use std::sync::Arc;

use bayesmesh::Draw;
use burn::tensor::{Int, Tensor, TensorData};

/// By how many columns each row is turned, from 0 to below the longitudes; none where nothing is.
pub fn turns_of(turns: Tensor<1, Int>, longitudes: usize) -> Arc<[usize]> {
    let turns = turns.try_into_vec_as::<i64>().expect("integers can be read back");
    let around = longitudes.max(1) as i64;
    let turns: Arc<[usize]> = turns.iter().map(|turn| turn.rem_euclid(around) as usize).collect();
    if turns.iter().all(|turn| *turn == 0) { Arc::default() } else { turns }
}

/// Fields with so many of white noise after them; zeros under a posterior without noise.
pub fn with_noise(fields: Tensor<4>, count: usize, draw: &Draw) -> Tensor<4> {
    if count == 0 {
        return fields;
    }
    let ([rows, _, high, wide], device) = (fields.dims(), fields.device());
    let shape = [rows, count, high, wide];
    let noise = match draw.latent_of_rows(rows, count * high * wide) {
        Some(noise) => Tensor::from_data(TensorData::new(noise, shape), &device),
        None => Tensor::zeros(shape, &device),
    };
    Tensor::cat(vec![fields, noise], 1)
}
