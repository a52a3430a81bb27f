//! What reports of regressions have in common.

use bayesmesh::metrics::percent;
use bayesmesh_report::{
    Axis, Block, Cell, Color, KeyFigure, Layer, Plot, Report, Rule, Section, Shape, Table,
};

use super::{Regression, RegressionAssessment};
use crate::run::MetricsTable;
use crate::tasks::{curves, page};
use crate::use_cases::{Reported, UseCase};

/// The page of a regression that has nothing more to show.
pub(super) fn report<U: UseCase<Task = Regression>>(
    task: &Regression,
    run: &Reported<'_, U>,
) -> Report {
    let assessment = run.assessment;
    let lead = format!(
        "A Bayesian network predicts values and says how sure it is. Scores are those of {} that \
         it has not seen, from {} draws.",
        U::EXAMPLES,
        assessment.draws
    );
    let sections = vec![
        training(task, run.metrics),
        calibration(task, assessment, &Outputs { name: "output", label: "output", step: 1.0 }),
        Section::new("Scores").with(Block::Table(scores(task, assessment, "prediction", &[]))),
    ];
    page(run, lead, headline(task, assessment, None), sections, None)
}

/// Error, coverage and CRPS.
pub fn headline(
    task: &Regression,
    assessment: &RegressionAssessment,
    note: Option<String>,
) -> Vec<KeyFigure> {
    let number = |label: &str, name: &str| {
        let figure = KeyFigure::new(label, task.shown(assessment.in_unit(name)));
        if task.unit.is_empty() { figure } else { figure.unit(&task.unit) }
    };
    let error = number("Test RMSE", "rmse");
    let covers = format!("{} % interval covers", percent(assessment.level));
    vec![
        note.into_iter().fold(error, KeyFigure::note),
        KeyFigure::new(covers, format!("{:.1}", 100.0 * assessment.covered()))
            .unit("%")
            .note("of the test points"),
        number("CRPS", "crps").note("error of the whole distribution"),
    ]
}

fn axis(task: &Regression, name: &str) -> Axis {
    let axis = Axis::linear(name);
    if task.unit.is_empty() { axis } else { axis.unit(&task.unit) }
}

/// Loss and validation error.
pub fn training(task: &Regression, metrics: &MetricsTable) -> Section {
    let points = curves::column(metrics, &format!("validation_rmse{}", task.suffix()));
    let error = Plot::new("Validation error", Axis::linear("step"), axis(task, "RMSE"))
        .shape(Shape::Half)
        .with(Layer::line("validation", points.clone(), Color::Orange))
        .with(Layer::points("validation", points, Color::Orange));
    Section::new("Training").with(Block::Plot(curves::loss(metrics))).with(Block::Plot(error))
}

/// What the outputs of a regression are, for plots.
pub struct Outputs {
    /// What one is called: "lead time".
    pub name: &'static str,
    /// The axis along which they stand: "lead time (h)".
    pub label: &'static str,
    /// How far apart they stand on it.
    pub step: f64,
}

/// Whether intervals hold what they promise.
pub fn calibration(
    task: &Regression,
    assessment: &RegressionAssessment,
    outputs: &Outputs,
) -> Section {
    let section = Section::new("Calibration")
        .text("An honest interval of 90 % holds the truth nine times out of ten.")
        .with(Block::Plot(coverage(assessment)))
        .with(Block::Plot(pit(assessment)));
    match assessment.by_output.len() {
        1 => section,
        _ => section.with(Block::Plot(by_output(task, assessment, outputs))),
    }
}

fn coverage(assessment: &RegressionAssessment) -> Plot {
    let share = |name: &str| Axis::linear(name).range(0.0, 1.0);
    Plot::new("Coverage of central intervals", share("nominal"), share("observed"))
        .shape(Shape::Square)
        .caption("Above the diagonal intervals are too wide, below it too narrow.")
        .with(Layer::rule("perfect", Rule::Diagonal))
        .with(Layer::line("prediction", assessment.calibration.clone(), Color::Blue))
        .with(Layer::points("prediction", assessment.calibration.clone(), Color::Blue))
}

fn pit(assessment: &RegressionAssessment) -> Plot {
    let total: f64 = assessment.pit.iter().sum();
    let bins = assessment.pit.len();
    let edges: Vec<f64> = (0..=bins).map(|edge| edge as f64 / bins as f64).collect();
    let heights: Vec<f64> = assessment.pit.iter().map(|n| n / total * bins as f64).collect();
    Plot::new(
        "PIT histogram",
        Axis::linear("probability integral transform"),
        Axis::linear("density"),
    )
    .shape(Shape::Square)
    .caption("Flat when the predicted distribution is right; a hill when it is too wide.")
    .with(Layer::histogram("test part", &edges, &heights, Color::Blue))
    .with(Layer::rule("flat", Rule::Horizontal(1.0)))
}

fn by_output(task: &Regression, assessment: &RegressionAssessment, outputs: &Outputs) -> Plot {
    let &Outputs { name, label, step } = outputs;
    let points = |pick: fn(&(f64, f64)) -> f64| -> Vec<(f64, f64)> {
        let rows = assessment.by_output.iter().enumerate();
        rows.map(|(output, row)| ((output + 1) as f64 * step, pick(row))).collect()
    };
    Plot::new(format!("Error by {name}"), Axis::linear(label), axis(task, "RMSE"))
        .shape(Shape::Half)
        .caption("Where both agree the network knows how wrong it is.")
        .with(Layer::line("error", points(|row| row.0), Color::Ink))
        .with(Layer::line("predicted deviation", points(|row| row.1), Color::Blue))
}

/// The scores, beside the RMSE of what costs nothing.
pub fn scores(
    task: &Regression,
    assessment: &RegressionAssessment,
    name: &str,
    baselines: &[(&str, f64)],
) -> Table {
    let decimals = task.decimals;
    let number = |name: &str| Cell::number(assessment.in_unit(name), decimals);
    let baseline = |(name, rmse): &(&str, f64)| {
        let mut row = vec![Cell::from(*name), Cell::number(*rmse, decimals)];
        row.resize_with(6, || Cell::from("–"));
        row
    };
    let covers = format!("{} % covers (%)", percent(assessment.level));
    let own = vec![
        Cell::from(name),
        number("rmse"),
        number("mae"),
        number("crps"),
        Cell::number(100.0 * assessment.covered(), 1),
        number("mean_std"),
    ];
    let [rmse, mae, crps, std] = ["RMSE", "MAE", "CRPS", "mean std"].map(|name| task.label(name));
    Table {
        caption: "Scores on the test part; lower is better but for coverage.".into(),
        header: vec![String::new(), rmse, mae, crps, covers, std],
        rows: std::iter::once(own).chain(baselines.iter().map(baseline)).collect(),
        highlight: Some(0),
    }
}
