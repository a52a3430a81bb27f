//! Whole epochs: loading, augmentation and validation included.

use bayesmesh_bench::epoch_files;

use super::Outcome;
use super::race::{Bar, Field, Work};

const TORCH: &str = "PyTorch f32";
const TORCH_BF16: &str = "PyTorch bf16";
const OURS: &str = "ours f32, 2 ranks";
const OURS_BF16: &str = "ours bf16, 2 ranks";

pub fn vit(field: &Field) -> Outcome<Work> {
    let folder = field.files()?.join("images");
    epoch_files::make_images(&folder)?;
    let title = "An epoch of the Bayesian ViT, batch 64, 4 draws: 1,024 images, 256 to validate";
    let ours = format!("vit {} 64 4 2x1 1 threads=1", folder.display());
    let torch = format!("bench/peers/vit_epoch_torch.py {} 64 4", folder.display());
    race(field, title, &ours, &torch)
}

pub fn mlp(field: &Field) -> Outcome<Work> {
    let file = field.files()?.join("load.f32");
    epoch_files::make_load(&file)?;
    let title = "An epoch of the MLP, batch 64, 16 draws: 64,000 windows, 4,096 to validate";
    let ours = format!("mlp {} 64 16 2x1 3 threads=1", file.display());
    let torch = format!("bench/peers/mlp_epoch_torch.py {} 64 16", file.display());
    race(field, title, &ours, &torch)
}

/// Ours beside PyTorch, whose loader works in the process that trains, or in one or two others.
fn race(field: &Field, title: &'static str, ours: &str, torch: &str) -> Outcome<Work> {
    let mut contestants = vec![
        field.ours(OURS, "epoch", ours),
        field.ours(OURS_BF16, "epoch", &format!("{ours} precision=bf16")),
    ];
    let commands = [0, 1, 2].map(|workers| format!("{torch} 2 {workers} 1"));
    let names = ["no loading process", "1 loading process", "2 loading processes"];
    let configurations: Vec<(&str, &str)> =
        names.into_iter().zip(commands.iter().map(String::as_str)).collect();
    contestants.extend(field.team(TORCH, &configurations, ""));
    contestants.extend(field.team(TORCH_BF16, &configurations, "bf16"));
    let mut work = Work::race(field, title, "s", contestants)?;
    work.speed(OURS, TORCH, Bar::None);
    work.speed(OURS_BF16, TORCH_BF16, Bar::None);
    Ok(work)
}
