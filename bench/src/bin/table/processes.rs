//! Ranks that are MPI processes: scaling, hidden communication, slow loaders.

use bayesmesh_bench::PngFiles;

use super::Outcome;
use super::race::{Bar, Contestant, Field, Work};

pub fn vit(field: &Field) -> Outcome<Work> {
    const ONE: &str = "1 rank, S = 1";
    const TWO: &str = "1 rank, S = 2";
    const PAIR: &str = "2 ranks, S = 2";
    const AFTER: &str = "2 ranks, S = 2, sums after the backward pass";
    let contestants = vec![
        field.job(PAIR, 2, "vit", "64 2 2x1 6 threads=1"),
        field.job(ONE, 1, "vit", "64 1 1x1 6 threads=1"),
        field.job(TWO, 1, "vit", "64 2 1x1 4 threads=1"),
        field.job(AFTER, 2, "vit", "64 2 2x1 6 threads=1 overlap=false"),
    ];
    let title = "Training step of the Bayesian ViT on MPI processes of one thread, batch 64";
    let mut work = Work::race(field, title, "s", contestants)?;
    let (one, two, pair) = (work.best(ONE), work.best(TWO), work.best(PAIR));
    work.add("E(2), proportional samples", one / pair, Bar::AtLeast(0.95));
    work.add("S(2), fixed samples", two / pair, Bar::AtLeast(1.9));
    let other = |c: &Contestant, place: usize| c.others.get(place).copied().unwrap_or(f64::NAN);
    let percent = |work: &Work, name: &str, place: usize| {
        let contestant = work.of(name);
        other(contestant, place) / 10.0 / contestant.best
    };
    for (place, what, bar) in [
        (3, "communicating, not hidden", Bar::AtMost(3.0)),
        (4, "waiting for that and for a slower rank", Bar::None),
    ] {
        let (during, after) = (percent(&work, PAIR, place), percent(&work, AFTER, place));
        work.add(format!("% of the step {what}"), during, bar);
        work.add("the same, sums after the backward pass", after, Bar::None);
    }
    let share = 100.0 * other(work.of(PAIR), 5);
    work.add("% of the gradient handed over before the backward pass ends", share, Bar::None);
    Ok(work)
}

/// Fixed draws on one rank and two, divided by draws or by data, with a loader.
fn loading(
    field: &Field,
    title: &'static str,
    unit: &'static str,
    program: &str,
    counts: usize,
    (shape, steps, loader): (&str, &str, &str),
) -> Outcome<Work> {
    const SAMPLING: &str = "2 sample ranks, shared loading";
    const ALONE: &str = "2 sample ranks, each loading everything";
    const DATA: &str = "2 data ranks";
    const SERIAL: &str = "1 rank";
    let line =
        |mesh: &str, change: &str| format!("{shape} {mesh} {steps} threads=1 {loader} {change}");
    let contestants = [
        field.job(SAMPLING, 2, program, &line("2x1", "")),
        field.job(ALONE, 2, program, &line("2x1", "share_loading=false")),
        field.job(DATA, 2, program, &line("1x2", "")),
        field.job(SERIAL, 1, program, &line("1x1", "")),
    ]
    .map(|contestant| contestant.counting(counts));
    let mut work = Work::race(field, title, unit, contestants.into())?;
    for name in [SAMPLING, ALONE, DATA] {
        let value = work.best(SERIAL) / work.best(name);
        work.add(format!("speed-up of {name}"), value, Bar::None);
    }
    let ratio = work.best(DATA) / work.best(SAMPLING);
    work.add("draws divided against data divided", ratio, Bar::AtLeast(1.0));
    Ok(work)
}

pub fn slow_vit(field: &Field) -> Outcome<Work> {
    let title = "ViT with 2 draws, batch 64, a loader that takes 25 ms an image, on MPI processes";
    // The mean over steps counts: some find a batch that was loaded ahead.
    loading(field, title, "s", "vit", 1, ("64 2", "10", "load_delay_ms=25"))
}

pub fn photo_vit(field: &Field) -> Outcome<Work> {
    let title = "ViT with 2 draws, batch 64, from PNG files of 512 x 512 pixels, on MPI processes";
    let folder = field.files()?.join("png");
    PngFiles::new(&folder).make()?;
    let loader = format!("images={}", folder.display());
    loading(field, title, "s", "vit", 1, ("64 2", "10", &loader))
}

pub fn slow_mlp(field: &Field) -> Outcome<Work> {
    let title =
        "MLP with 16 draws, batch 64, a loader that takes 0.05 ms a window, on MPI processes";
    loading(field, title, "ms", "mlp", 0, ("64 16", "1000", "load_delay_ms=0.05"))
}

pub fn quick_mlp(field: &Field) -> Outcome<Work> {
    let title = "MLP with 16 draws, batch 64, windows in memory, on MPI processes";
    loading(field, title, "ms", "mlp", 0, ("64 16", "1000", ""))
}
