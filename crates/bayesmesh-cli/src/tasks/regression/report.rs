//! What reports of regressions have in common.

use bayesmesh::calibrate::Method;
use bayesmesh::metrics::percent;
use bayesmesh_report::{
    Axis, Block, Cell, Color, KeyFigure, Layer, Plot, Report, Rule, Section, Shape, Stroke, Table,
    format_number,
};

use super::{Regression, RegressionAssessment, Strata};
use crate::run::MetricsTable;
use crate::tasks::{Assessment as _, RAW, curves, page};
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
        calibration(
            task,
            assessment,
            &Outputs { name: "output", label: "output".to_owned(), step: 1.0 },
        ),
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
        KeyFigure::new(covers, format!("{:.1}", 100.0 * assessment.covered())).unit("%").note(
            match assessment.method {
                Some(_) => {
                    format!("before calibration: {:.1}", 100.0 * assessment.covered_before())
                }
                None => "of the test points".to_owned(),
            },
        ),
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
    pub label: String,
    /// How far apart they stand on it.
    pub step: f64,
}

/// Whether intervals hold what they promise, on the whole and under conditions.
pub fn calibration(
    task: &Regression,
    assessment: &RegressionAssessment,
    outputs: &Outputs,
) -> Section {
    let mut section = Section::new("Calibration")
        .text(format!(
            "An honest interval of 90 % holds the truth nine times out of ten. {}",
            how(assessment)
        ))
        .with(Block::Plot(coverage(assessment)))
        .with(Block::Plot(pit(assessment)));
    if assessment.by_output.len() > 1 {
        section = section
            .with(Block::Plot(by_output(task, assessment, outputs)))
            .with(Block::Plot(coverage_by_output(assessment, outputs)));
    }
    let strata = [by_spread(task, assessment), by_group(assessment)];
    let tables = std::iter::once(levels(assessment)).chain(strata.into_iter().flatten());
    section.with_all(tables.map(Block::Table))
}

/// How predictions were calibrated, and what that promises.
fn how(assessment: &RegressionAssessment) -> String {
    let Some((method, examples)) = assessment.method else {
        return "Intervals are those of the network, not calibrated.".to_owned();
    };
    let examples = format_number(examples as f64, 0);
    match method {
        Method::Adaptive(_) => format!(
            "Intervals start from {examples} validation examples and follow what comes true: each \
             forecast knows what was known when it is made. That keeps their promise in the long \
             run, whatever the series does, though not at every single time."
        ),
        Method::Variance => format!(
            "Deviations are multiplied by a factor for each output, from {examples} validation \
             examples."
        ),
        _ => format!(
            "Levels are those that intervals kept on {examples} validation examples. That holds \
             for new examples of the same kind, though not for every group of them."
        ),
    }
}

fn coverage(assessment: &RegressionAssessment) -> Plot {
    let share = |name: &str| Axis::linear(name).range(0.0, 1.0);
    let plot = Plot::new("Coverage of central intervals", share("nominal"), share("observed"))
        .shape(Shape::Square)
        .caption("Above the diagonal intervals are too wide, below it too narrow.")
        .with(Layer::rule("perfect", Rule::Diagonal));
    let plot = match &assessment.calibration_raw {
        Some(raw) => plot.with(
            Layer::line("before calibration", raw.clone(), Color::Orange).stroke(Stroke::Dashed),
        ),
        None => plot,
    };
    plot.with(Layer::line("prediction", assessment.calibration.clone(), Color::Blue))
        .with(Layer::points("prediction", assessment.calibration.clone(), Color::Blue))
}

fn pit(assessment: &RegressionAssessment) -> Plot {
    let bins = assessment.pit.len();
    let edges: Vec<f64> = (0..=bins).map(|edge| edge as f64 / bins as f64).collect();
    let heights = |counts: &[f64]| -> Vec<f64> {
        let total: f64 = counts.iter().sum();
        counts.iter().map(|n| n / total * bins as f64).collect()
    };
    let plot = Plot::new(
        "PIT histogram",
        Axis::linear("probability integral transform"),
        Axis::linear("density"),
    )
    .shape(Shape::Square)
    .caption("Flat when the predicted distribution is right; a hill when it is too wide.")
    .with(Layer::histogram("test part", &edges, &heights(&assessment.pit), Color::Blue));
    let plot = match &assessment.pit_raw {
        Some(raw) => {
            let heights = heights(raw);
            let steps = edges.iter().copied().zip(heights.iter().chain(heights.last()).copied());
            plot.with(Layer::steps("before calibration", steps, Color::Orange))
        }
        None => plot,
    };
    plot.with(Layer::rule("flat", Rule::Horizontal(1.0)))
}

/// Coverage and more at every level, before and after, each with how far it may be off by chance.
fn levels(assessment: &RegressionAssessment) -> Table {
    let percent_of = |name: String| {
        let score = assessment.scores.iter().find(|score| score.name == name);
        score.map_or(Cell::from("–"), |score| {
            let [value, error] = [score.value, score.se_draws].map(|x| 100.0 * x);
            match error.is_finite() {
                true => Cell::from(format!("{value:.1} ± {error:.1}").as_str()),
                false => Cell::number(value, 1),
            }
        })
    };
    let rows = assessment.scores.iter().filter_map(|score| {
        let level = score.name.strip_prefix("coverage_")?;
        let before = percent_of(format!("coverage_{level}{RAW}"));
        let own = !level.ends_with(RAW);
        own.then(|| {
            vec![
                Cell::from(level),
                percent_of(score.name.clone()),
                before,
                percent_of(format!("band_coverage_{level}")),
            ]
        })
    });
    Table {
        caption: "Share of the truth inside, in percent, with its standard error over draws. A \
                  band holds all outputs of an example at once."
            .into(),
        header: ["Level (%)", "Interval", "Before calibration", "Band"].map(Into::into).into(),
        rows: rows.collect(),
        highlight: None,
    }
}

fn coverage_by_output(assessment: &RegressionAssessment, outputs: &Outputs) -> Plot {
    let Outputs { name, label, step } = outputs;
    let strata = &assessment.coverage_by_output.own;
    let colors = [Color::Blue, Color::Green, Color::Orange, Color::Purple];
    let count = strata.first().map_or(0, |stratum| stratum.coverage.len());
    let plot = Plot::new(
        format!("Coverage by {name}"),
        Axis::linear(label),
        Axis::linear("inside").unit("%").range(0.0, 100.0),
    )
    .shape(Shape::Half)
    .caption("Level lines are perfect.");
    (0..count.min(colors.len())).fold(plot, |plot, index| {
        let points = strata.iter().enumerate().map(|(output, stratum)| {
            ((output + 1) as f64 * step, 100.0 * stratum.coverage[index].observed)
        });
        let nominal = strata[0].coverage[index].nominal;
        plot.with(Layer::rule("", Rule::Horizontal(100.0 * nominal))).with(Layer::line(
            format!("{} %", percent(nominal)),
            points.collect::<Vec<_>>(),
            colors[index],
        ))
    })
}

fn strata(caption: &str, first: &str, names: &[String], strata: &Strata) -> Option<Table> {
    let levels: Vec<String> = strata
        .own
        .first()?
        .coverage
        .iter()
        .map(|row| format!("{} %", percent(row.nominal)))
        .collect();
    let rows = names.iter().zip(strata.own.iter().zip(&strata.raw)).map(|(name, (own, raw))| {
        let levels = own.coverage.iter().zip(&raw.coverage);
        let cells = levels.map(|(own, raw)| {
            let [own, raw] = [own, raw].map(|row| 100.0 * row.observed);
            Cell::from(format!("{own:.1} ({raw:.1})").as_str())
        });
        let count = Cell::number(own.count, 0);
        [Cell::from(name.as_str()), count].into_iter().chain(cells).collect()
    });
    let header = [first.to_owned(), "values".to_owned()].into_iter().chain(levels);
    let caption = format!("{caption} In brackets before calibration.");
    Some(Table { caption, header: header.collect(), rows: rows.collect(), highlight: None })
}

fn by_spread(task: &Regression, assessment: &RegressionAssessment) -> Option<Table> {
    let ends: Vec<String> = assessment.spreads.iter().map(|end| task.shown(*end)).collect();
    let (first, last) = (ends.first()?, ends.last()?);
    let mut names = vec![format!("below {first}")];
    names.extend(ends.windows(2).map(|pair| format!("{} to {}", pair[0], pair[1])));
    names.push(format!("above {last}"));
    let caption = "Coverage in percent of predictions from narrow to wide.";
    let first = task.label("predicted std");
    strata(caption, &first, &names, &assessment.coverage_by_spread)
}

fn by_group(assessment: &RegressionAssessment) -> Option<Table> {
    let (by, names) = assessment.groups.as_ref()?;
    strata(&format!("Coverage in percent by {by}."), by, names, &assessment.coverage_by_group)
}

fn by_output(task: &Regression, assessment: &RegressionAssessment, outputs: &Outputs) -> Plot {
    let Outputs { name, label, step } = outputs;
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
    let before = assessment.method.map(|_| {
        let raw = |name: &str| Cell::number(assessment.score(&assessment.raw_name(name)), decimals);
        let covered = Cell::number(100.0 * assessment.covered_before(), 1);
        let name = Cell::from("before calibration");
        vec![name, number("rmse"), number("mae"), raw("crps"), covered, raw("mean_std")]
    });
    let [rmse, mae, crps, std] = ["RMSE", "MAE", "CRPS", "mean std"].map(|name| task.label(name));
    Table {
        caption: "Scores on the test part; lower is better but for coverage.".into(),
        header: vec![String::new(), rmse, mae, crps, covers, std],
        rows: std::iter::once(own).chain(before).chain(baselines.iter().map(baseline)).collect(),
        highlight: Some(0),
    }
}
