//! Curves of a training for reports.

use bayesmesh_report::{Axis, Color, Layer, Plot, Shape, Stroke};

use crate::run::MetricsTable;

/// A column of the metrics as points.
pub fn column(metrics: &MetricsTable, name: &str) -> Vec<(f64, f64)> {
    let values = metrics.column(name).unwrap_or_default();
    values.into_iter().map(|(step, value)| (step as f64, value)).collect()
}

/// Means of so many neighbours that about a hundred points are left.
pub fn smooth(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let size = points.len().div_ceil(100).max(1);
    let mean = |chunk: &[(f64, f64)]| {
        let n = chunk.len() as f64;
        let (x, y) = chunk.iter().fold((0.0, 0.0), |(x, y), p| (x + p.0, y + p.1));
        (x / n, y / n)
    };
    points.chunks(size).map(mean).collect()
}

/// The objective, step by step and smoothed.
pub fn loss(metrics: &MetricsTable) -> Plot {
    of_steps(metrics, "loss", "Loss")
}

/// Its data term.
pub fn data_term(metrics: &MetricsTable) -> Plot {
    of_steps(metrics, "data", "Training loss").caption("Without the distance to the prior.")
}

fn of_steps(metrics: &MetricsTable, name: &str, title: &str) -> Plot {
    let points = column(metrics, name);
    // A log-likelihood can be negative, which a logarithmic axis cannot show.
    let positive = points.iter().all(|(_, loss)| *loss > 0.0);
    let axis = if positive { Axis::log("loss") } else { Axis::linear("loss") };
    Plot::new(title, Axis::linear("step"), axis)
        .shape(Shape::Half)
        .with(Layer::line("", points.clone(), Color::Blue).stroke(Stroke::Thin))
        .with(Layer::line("training", smooth(&points), Color::Blue))
}

/// The distance of the weights to the prior, unweighted.
pub fn divergence(metrics: &MetricsTable) -> Plot {
    Plot::new("Distance to the prior", Axis::linear("step"), Axis::linear("KL").unit("nats"))
        .shape(Shape::Half)
        .with(Layer::line("KL(q‖p)", column(metrics, "kl"), Color::Purple))
}
