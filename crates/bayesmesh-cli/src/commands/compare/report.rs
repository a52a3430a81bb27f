//! The page of a comparison.

use bayesmesh_report::{Axis, Block, Cell, Color, Layer, Plot, Report, Section, Shape, Table};

use super::VariantRun;
use super::plan::Plan;
use super::summary::{Spread, Summary};
use crate::recipe::Recipe;
use crate::tasks::curves;

const COLORS: [Color; 6] =
    [Color::Blue, Color::Orange, Color::Green, Color::Purple, Color::Gold, Color::Ink];

/// The page: curves of the training with a band over seeds, then scores.
pub fn report(
    recipe: &Recipe,
    plan: &Plan,
    finished: &[Vec<VariantRun>],
    summary: &Summary,
    main: &[&str],
) -> Report {
    let seeds: Vec<String> = plan.seeds().iter().map(u64::to_string).collect();
    let mut training = Section::new("Training").text(format!(
        "Mean over the {}; the band is one standard deviation to each side.",
        plan.repeated()
    ));
    for column in columns(finished) {
        training = training.with(Block::Plot(curve(plan, finished, &column)));
    }
    let all = summary.score_names();
    let others: Vec<&str> = all.iter().copied().filter(|name| !main.contains(name)).collect();
    let known: Vec<&str> = main.iter().copied().filter(|name| all.contains(name)).collect();
    let scores =
        Section::new("Scores on the test data").with(Block::Table(means(plan, summary, &known)));
    let scores = match plan.variants.len() {
        1 => scores,
        _ => scores.with(Block::Table(differences(plan, summary, &known))),
    };
    let details =
        Section::new("All other scores").with(Block::Table(transposed(plan, summary, &others)));
    Report {
        title: format!("{}: a comparison", recipe.name),
        lead: format!(
            "{}, each trained with {}{}. Runs with the same seed begin with the same weights and \
             see the same examples in the same order.",
            match plan.variants.len() {
                1 => "1 variant".to_owned(),
                variants => format!("{variants} variants"),
            },
            match seeds.as_slice() {
                [seed] => format!("the seed {seed}"),
                seeds => format!("the seeds {}", seeds.join(", ")),
            },
            match plan.splits().len() {
                0 => String::new(),
                splits => format!(" on {splits} divisions of the data"),
            }
        ),
        headline: Vec::new(),
        sections: vec![scores, training, details],
        footer: format!("Made by BayesMesh {}.", env!("CARGO_PKG_VERSION")),
    }
}

/// The columns of the metrics that are shown: the loss, and scores on validation data.
fn columns(finished: &[Vec<VariantRun>]) -> Vec<String> {
    let Some(first) = finished.iter().flatten().next() else {
        return Vec::new();
    };
    let names = first.metrics.columns.iter();
    names
        .filter(|name| *name == "loss" || name.starts_with("validation_"))
        .filter(|name| !curves::column(&first.metrics, name).is_empty())
        .cloned()
        .collect()
}

fn curve(plan: &Plan, finished: &[Vec<VariantRun>], column: &str) -> Plot {
    let label = column.replace('_', " ");
    let mut plot = Plot::new(capitalised(&label), Axis::linear("step"), Axis::linear(&label))
        .shape(Shape::Half);
    for (index, (variant, runs)) in plan.variants.iter().zip(finished).enumerate() {
        let of_run = |run: &VariantRun| curves::smooth(&curves::column(&run.metrics, column));
        let of_runs: Vec<Vec<(f64, f64)>> = runs.iter().map(of_run).collect();
        let steps = of_runs.iter().map(Vec::len).min().unwrap_or(0);
        let spread = |step: usize| {
            let values: Vec<f64> = of_runs.iter().map(|points| points[step].1).collect();
            (of_runs[0][step].0, Spread::of(&values))
        };
        let spreads: Vec<(f64, Spread)> = (0..steps).map(spread).collect();
        let color = COLORS[index % COLORS.len()];
        let band = spreads.iter().map(|(x, s)| (*x, s.mean - s.std, s.mean + s.std));
        let line = spreads.iter().map(|(x, s)| (*x, s.mean));
        if runs.len() > 1 {
            plot = plot.with(Layer::band("", band, color));
        }
        plot = plot.with(Layer::line(&variant.name, line, color));
    }
    plot
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn header(first: &str, scores: &[&str]) -> Vec<String> {
    let scores = scores.iter().map(|score| score.replace('_', " "));
    std::iter::once(first.to_owned()).chain(scores).collect()
}

fn means(plan: &Plan, summary: &Summary, scores: &[&str]) -> Table {
    let row = |variant: usize| {
        let cell = |score: &&str| shown(summary, summary.spread(variant, score));
        let name = Cell::from(plan.variants[variant].name.as_str());
        std::iter::once(name).chain(scores.iter().map(cell)).collect()
    };
    Table {
        caption: format!("Mean and {} over the {}.", summary.of(), plan.repeated()),
        header: header("Variant", scores),
        rows: (0..plan.variants.len()).map(row).collect(),
        highlight: None,
    }
}

fn differences(plan: &Plan, summary: &Summary, scores: &[&str]) -> Table {
    let row = |variant: usize| {
        let cell = |score: &&str| shown(summary, summary.difference(variant, score));
        let name = Cell::from(plan.variants[variant].name.as_str());
        std::iter::once(name).chain(scores.iter().map(cell)).collect()
    };
    Table {
        caption: format!(
            "How much higher than with {}: mean and {} of the differences between runs with the \
             same {}.",
            plan.variants[0].name,
            summary.of(),
            if plan.splits().is_empty() { "seed" } else { "division and seed" }
        ),
        header: header("Variant", scores),
        rows: (1..plan.variants.len()).map(row).collect(),
        highlight: None,
    }
}

/// Many scores: one row each.
fn transposed(plan: &Plan, summary: &Summary, scores: &[&str]) -> Table {
    let row = |score: &&str| {
        let cells =
            (0..plan.variants.len()).map(|variant| shown(summary, summary.spread(variant, score)));
        std::iter::once(Cell::from(score.replace('_', " "))).chain(cells).collect()
    };
    let names = plan.variants.iter().map(|variant| variant.name.clone());
    Table {
        caption: format!("Mean and {} over the {}.", summary.of(), plan.repeated()),
        header: std::iter::once("Score".to_owned()).chain(names).collect(),
        rows: scores.iter().map(row).collect(),
        highlight: None,
    }
}

fn shown(summary: &Summary, spread: Option<Spread>) -> Cell {
    Cell::from(spread.map_or_else(|| "–".to_owned(), |spread| summary.shown(spread)))
}
