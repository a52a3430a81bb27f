//! What the matrix product alone reaches: the bound for anything that is made of products.
//!
//! usage: roofline THREADS     prints the GFLOP/s of so many threads at once, one product each

use std::time::Instant;

use gemm::Parallelism;

/// Large enough that packing is nothing beside it, small enough to stay in the cache.
const N: usize = 768;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let threads: usize = std::env::args().nth(1).ok_or("usage: roofline THREADS")?.parse()?;
    let left = vec![0.5f32; N * N];
    let right = vec![0.25f32; N * N];
    let rate = || {
        let mut product = vec![0.0f32; N * N];
        let mut best = f64::INFINITY;
        for _ in 0..40 {
            let start = Instant::now();
            // SAFETY: three square matrices of N rows, row after row.
            unsafe {
                gemm::gemm(
                    N,
                    N,
                    N,
                    product.as_mut_ptr(),
                    1,
                    N as isize,
                    false,
                    left.as_ptr(),
                    1,
                    N as isize,
                    right.as_ptr(),
                    1,
                    N as isize,
                    0.0,
                    1.0,
                    false,
                    false,
                    false,
                    Parallelism::None,
                );
            }
            best = best.min(start.elapsed().as_secs_f64());
        }
        2.0 * (N * N * N) as f64 / best / 1e9
    };
    let total: f64 = std::thread::scope(|scope| {
        let ranks: Vec<_> = (0..threads).map(|_| scope.spawn(rate)).collect();
        ranks.into_iter().map(|rank| rank.join().expect("no panic")).sum()
    });
    println!("{total}");
    Ok(())
}
