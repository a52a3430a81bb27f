//! Steps of the load forecast's MLP, and the normal numbers that draws are made of.

use super::Outcome;
use super::race::{Bar, Field, Work};

const TORCH: &str = "PyTorch f32";
const TORCH_BF16: &str = "PyTorch bf16";
const JAX: &str = "JAX f32";

pub fn step(field: &Field) -> Outcome<Work> {
    const OURS: &str = "ours f32, 2 ranks";
    let mut contestants = vec![
        field.ours(OURS, "mlp", "64 16 2x1 1000"),
        field.ours("ours f32, 1 rank", "mlp", "64 16 1x1 1000"),
        field.ours("ours bf16, 2 ranks", "mlp", "64 16 2x1 1000 precision=bf16"),
    ];
    let torch = [
        ("eager, 2 threads", "bench/peers/mlp_torch.py 64 16 2 1000"),
        ("eager, 1 thread", "bench/peers/mlp_torch.py 64 16 1 1000"),
        ("compiled, 2 threads", "bench/peers/mlp_torch.py 64 16 2 1000 compile"),
    ];
    contestants.extend(field.team(TORCH, &torch, ""));
    contestants.extend(field.team(TORCH_BF16, &torch[..1], "bf16"));
    contestants.extend(field.team(JAX, &[("all draws", "bench/peers/mlp_jax.py 64 16 1000")], ""));
    let title = "Training step of the load forecast's MLP, batch 64, 16 draws";
    let mut work = Work::race(field, title, "ms", contestants)?;
    work.speed(OURS, TORCH, Bar::AtLeast(5.0));
    work.speed(OURS, TORCH_BF16, Bar::None);
    work.speed(OURS, JAX, Bar::AtLeast(2.7));
    Ok(work)
}

pub fn normals(field: &Field) -> Outcome<Work> {
    const OURS: &str = "fill_normal";
    const NORMAL: &str = "PyTorch";
    let mut contestants = vec![field.ours(OURS, "normals", "")];
    contestants.extend(field.team(NORMAL, &[("normal_", "bench/peers/normals_torch.py")], ""));
    let title = "Ten million standard normals on one core";
    let mut work = Work::race(field, title, "ms", contestants)?;
    work.speed(OURS, NORMAL, Bar::None);
    Ok(work)
}
