//! What the matrix product alone reaches: the bound for anything that is made of products.
//!
//! usage: roofline THREADS [precision=f32|bf16]
//! prints the GFLOP/s of so many threads at once, one product each

use std::time::Instant;

use bayesmesh::Precision;
use bayesmesh_kernels::ops::{self, Epilogue};
use burn::tensor::{Device, Tensor};
use gemm::Parallelism;

/// Large enough that packing is nothing beside it, small enough to stay in the cache.
const N: usize = 768;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    const USAGE: &str = "usage: roofline THREADS [precision=f32|bf16]";
    let mut arguments = std::env::args().skip(1);
    let threads: usize = arguments.next().ok_or(USAGE)?.parse()?;
    // One line for each precision that there is a product for.
    let rate = match arguments.next().as_deref() {
        None | Some("precision=f32") => single,
        Some("precision=bf16") => half,
        Some(_) => return Err(USAGE.into()),
    };
    let total: f64 = std::thread::scope(|scope| {
        let ranks: Vec<_> = (0..threads).map(|_| scope.spawn(rate)).collect();
        ranks.into_iter().map(|rank| rank.join().expect("no panic")).sum()
    });
    println!("{total}");
    Ok(())
}

/// The GFLOP/s of the best of many products of two matrices of `N` rows.
fn rate(mut product: impl FnMut()) -> f64 {
    let seconds = (0..40).map(|_| {
        let start = Instant::now();
        product();
        start.elapsed().as_secs_f64()
    });
    2.0 * (N * N * N) as f64 / seconds.fold(f64::INFINITY, f64::min) / 1e9
}

/// In bf16, by the linear layer of ours: from an input in bf16 to an output in bf16.
fn half() -> f64 {
    let square = || Tensor::<2>::full([N, N], 0.5, &Device::default());
    let to_next = Epilogue { narrow: true, ..Epilogue::default() };
    let layer = |x: Tensor<2>| Precision::Bf16.scope(|| ops::linear(x, square(), None, to_next));
    let (input, weight) = (layer(square()), square());
    rate(|| {
        let (input, weight) = (input.clone(), weight.clone());
        Precision::Bf16.scope(|| ops::linear(input, weight, None, to_next));
    })
}

/// In single precision, by the `gemm` crate.
fn single() -> f64 {
    let (left, right) = (vec![0.5f32; N * N], vec![0.25f32; N * N]);
    let mut product = vec![0.0f32; N * N];
    let row = N as isize;
    rate(|| {
        // SAFETY: three square matrices of N rows, row after row.
        unsafe {
            gemm::gemm(
                N,
                N,
                N,
                product.as_mut_ptr(),
                1,
                row,
                false,
                left.as_ptr(),
                1,
                row,
                right.as_ptr(),
                1,
                row,
                0.0,
                1.0,
                false,
                false,
                false,
                Parallelism::None,
            );
        }
    })
}
