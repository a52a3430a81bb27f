//! Steps of the Bayesian ViT.

use super::Outcome;
use super::race::{Bar, Contestant, Field, Work};

/// Multiplications and additions of one image in one draw of the ViT, forward and backward: three
/// products of each linear layer, and seven of each head's scores and values (the backward pass
/// makes the scores again).
const FLOP: f64 = {
    let (tokens, width, depth, patch) = (64.0, 192.0, 6.0, 48.0);
    let linear = 3.0 * 2.0 * tokens * (depth * 12.0 * width * width + patch * width);
    let attention = 7.0 * 2.0 * depth * tokens * tokens * width;
    linear + attention
};

/// Teams of the competition.
const TORCH: &str = "PyTorch f32";
const TORCH_BF16: &str = "PyTorch bf16";
const JAX: &str = "JAX f32";
const JAX_BF16: &str = "JAX bf16";
const BLUE: &str = "torch_blue f32";
const BLUE_BF16: &str = "torch_blue bf16";

/// The competition in a step with four draws. Compiled on two ranks is left out: in f32 it was no
/// faster than eager there, and in bf16 four times slower.
fn competition(field: &Field) -> Vec<Contestant> {
    let torch = [
        ("eager, 2 threads", "bench/peers/vit_torch.py 64 4 2 4"),
        ("compiled, 2 threads", "bench/peers/vit_torch.py 64 4 2 4 compile"),
        ("eager, 2 ranks", "torchrun --nproc-per-node 2 bench/peers/vit_torch.py 64 4 1 4"),
    ];
    let jax =
        [("scan", "bench/peers/vit_jax.py 64 4 4"), ("vmap", "bench/peers/vit_jax.py 64 4 4 vmap")];
    let blue = [("2 ranks", "torchrun --nproc-per-node 2 bench/peers/vit_torch_blue.py 64 4 1 4")];
    [
        field.team(TORCH, &torch, ""),
        field.team(TORCH_BF16, &torch, "bf16"),
        field.team(JAX, &jax, ""),
        field.team(JAX_BF16, &jax[..1], "bf16"),
        field.team(BLUE, &blue, ""),
        field.team(BLUE_BF16, &blue, "bf16"),
    ]
    .into_iter()
    .flatten()
    .collect()
}

pub fn four_draws(field: &Field) -> Outcome<Work> {
    const OURS: &str = "ours f32, 2 ranks, S = 4";
    const OURS_BF16: &str = "ours bf16, 2 ranks, S = 4";
    const SPREAD: &str = "ours f32, 1 rank of 2 threads, S = 4";
    const ONE: &str = "ours f32, 1 rank of 1 thread, S = 1";
    const TWO: &str = "ours f32, 1 rank of 1 thread, S = 2";
    const PAIR: &str = "ours f32, 2 ranks, S = 2";
    let mut contestants = vec![
        field.ours(OURS, "vit", "64 4 2x1 4 threads=1"),
        field.ours(OURS_BF16, "vit", "64 4 2x1 6 threads=1 precision=bf16"),
        field.ours(SPREAD, "vit", "64 4 1x1 4 threads=2"),
        field.ours(ONE, "vit", "64 1 1x1 6 threads=1"),
        field.ours(TWO, "vit", "64 2 1x1 4 threads=1"),
        field.ours(PAIR, "vit", "64 2 2x1 6 threads=1"),
    ];
    contestants.extend(competition(field));
    let title = "Training step of the Bayesian ViT, batch 64";
    let mut work = Work::race(field, title, "s", contestants)?;
    let bound = field.most(field.ours("the product alone, 2 threads", "roofline", "2"))?;

    let (all, one) = (work.best(OURS), work.best(ONE));
    let (two, pair) = (work.best(TWO), work.best(PAIR));
    let faults = work.of(OURS).others.get(1).copied().unwrap_or(f64::NAN);
    let rate = 4.0 * 64.0 * FLOP / 1e9 / all;
    work.add("image-draws a second in f32", 256.0 / all, Bar::None);
    work.add("image-draws a second in bf16", 256.0 / work.best(OURS_BF16), Bar::None);
    work.add("f32: share of the bound that products set", rate / bound, Bar::AtLeast(0.82));
    work.add("that bound, GFLOP/s on two cores", bound, Bar::None);
    work.add("E(2), proportional samples", one / pair, Bar::AtLeast(0.95));
    work.add("S(2), fixed samples", two / pair, Bar::AtLeast(1.9));
    work.add("page faults of a step", faults, Bar::AtMost(0.0));
    let spread = work.best(SPREAD) / all;
    work.add("2 ranks: times as fast as 1 rank of 2 threads", spread, Bar::AtLeast(1.0));
    work.share(OURS, TORCH, Bar::AtMost(0.78));
    work.share(OURS_BF16, TORCH_BF16, field.in_bf16(Bar::AtMost(0.67)));
    work.speed(OURS, JAX, Bar::None);
    work.speed(OURS_BF16, JAX_BF16, Bar::None);
    work.speed(OURS, BLUE, Bar::AtLeast(1.75));
    work.speed(OURS_BF16, BLUE, field.in_bf16(Bar::AtLeast(2.7)));
    work.speed(OURS_BF16, BLUE_BF16, Bar::None);
    Ok(work)
}

pub fn sixteen_draws(field: &Field) -> Outcome<Work> {
    const OURS: &str = "ours f32, 2 thread-ranks, S = 16";
    const OURS_BF16: &str = "ours bf16, 2 thread-ranks, S = 16";
    let mut contestants = vec![
        field.ours(OURS, "vit", "64 16 2x1 2 threads=1"),
        field.ours(OURS_BF16, "vit", "64 16 2x1 2 threads=1 precision=bf16"),
    ];
    let blue = [("2 threads, S = 16", "bench/peers/vit_torch_blue.py 64 16 2 1")];
    contestants.extend(field.team(BLUE, &blue, ""));
    contestants.extend(field.team(BLUE_BF16, &blue, "bf16"));
    let title = "Training step of the Bayesian ViT with 16 draws, batch 64, in one process";
    let mut work = Work::race(field, title, "s", contestants)?;

    work.speed(OURS, BLUE, Bar::AtLeast(3.0));
    work.share(OURS_BF16, BLUE, field.in_bf16(Bar::AtMost(0.25)));
    work.speed(OURS_BF16, BLUE_BF16, Bar::None);
    let memory = |c: &Contestant| c.others.first().copied().unwrap_or(f64::NAN);
    let of_each: Vec<(String, f64)> =
        work.contestants.iter().map(|c| (c.name.clone(), memory(c))).collect();
    for (name, mebibytes) in of_each {
        work.add(format!("peak memory of {name}, MiB"), mebibytes, Bar::None);
    }
    if let Some(theirs) = work.champion(BLUE).map(memory) {
        let times = |name| theirs / memory(work.of(name));
        let (plain, half) = (times(OURS), times(OURS_BF16));
        work.add("f32: times less memory than torch_blue f32", plain, Bar::AtLeast(6.0));
        let bar = field.in_bf16(Bar::AtLeast(12.0));
        work.add("bf16: times less memory than torch_blue f32", half, bar);
    }
    Ok(work)
}
