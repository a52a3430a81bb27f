//! The report of a load forecast.

use bayesmesh_report::{
    Axis, Block, Cell, Color, Interval, KeyFigure, Layer, Plot, Report, Rule, Section, Shape,
    Table, format_number,
};

use super::assess::FAN_LEVELS;
use super::{Assessment, Forecast};
use crate::curves;
use crate::recipe::Recipe;
use crate::run::MetricsTable;
use crate::use_case::RunFacts;

/// The page of a run.
pub fn report(
    recipe: &Recipe,
    forecast: &Forecast,
    assessment: &Assessment,
    metrics: &MetricsTable,
    facts: &RunFacts,
) -> Report {
    let hours = |steps: usize| steps as f64 * f64::from(forecast.series.step_seconds) / 3600.0;
    let mut headline = vec![
        KeyFigure::new("Test RMSE", format_number(assessment.score("rmse_mw"), 0))
            .unit("MW")
            .note(format!("same time yesterday: {}", format_number(assessment.yesterday, 0))),
        KeyFigure::new(
            "90 % interval covers",
            format!("{:.1}", 100.0 * assessment.score("coverage_90")),
        )
        .unit("%")
        .note("of the test points"),
        KeyFigure::new("CRPS", format_number(assessment.score("crps_mw"), 0))
            .unit("MW")
            .note("error of the whole distribution"),
    ];
    if let Some(seconds) = facts.seconds {
        let note = format!("{} draws a step", recipe.train.samples);
        headline.push(KeyFigure::new("Training", format!("{seconds:.1}")).unit("s").note(note));
    }
    let mut data = Section::new("What ran where").with(Block::Facts(facts.facts.clone()));
    if let Some(repairs) = forecast.repairs.as_ref().filter(|repairs| !repairs.is_clean()) {
        data = data.with(Block::Note(format!(
            "{} values of the series were repaired; `bayesmesh data check load FILE` lists them.",
            repairs.replaced()
        )));
    }
    Report {
        title: recipe.name.clone(),
        lead: format!(
            "A Bayesian network forecasts the next {} hours of grid load from the last {} and says \
             how sure it is. Scores are those of data that it has not seen.",
            format_number(hours(forecast.outputs), 0),
            format_number(hours(forecast.inputs), 0),
        ),
        headline,
        sections: vec![
            Section::new("Forecast")
                .text(format!(
                    "Three days of the test part. A forecast of {} hours is made from what was \
                     known at its beginning, then the next one; so the fan opens again and again.",
                    format_number(hours(forecast.outputs), 0)
                ))
                .with(Block::Plot(fan(assessment))),
            Section::new("Training")
                .with(Block::Plot(curves::loss(metrics)))
                .with(Block::Plot(error(metrics))),
            Section::new("Calibration")
                .text("An honest interval of 90 % holds the truth nine times out of ten.")
                .with(Block::Plot(calibration(assessment)))
                .with(Block::Plot(pit(assessment)))
                .with(Block::Plot(by_lead(assessment, hours(1)))),
            Section::new("Scores").with(Block::Table(scores(assessment))),
            data,
        ],
        footer: format!("Made by BayesMesh {}.", env!("CARGO_PKG_VERSION")),
    }
}

fn fan(assessment: &Assessment) -> Plot {
    let interval = |index: usize| {
        let points = assessment.fan.iter().flat_map(|window| {
            let [lower, upper] = &window.intervals[index];
            let ends = lower.iter().copied().zip(upper.iter().copied());
            window.times.iter().zip(ends).map(|(&time, (low, high))| (time, low, high))
        });
        Interval { level: FAN_LEVELS[index], points: points.collect() }
    };
    let line = |pick: fn(&super::assess::FanWindow) -> &Vec<f64>| -> Vec<(f64, f64)> {
        let windows = assessment.fan.iter();
        windows.flat_map(|w| w.times.iter().copied().zip(pick(w).iter().copied())).collect()
    };
    Plot::new("Load", Axis::time("time, UTC"), Axis::linear("load").unit("MW"))
        .caption(format!(
            "Mean and central intervals of {} draws, noise included.",
            assessment.draws
        ))
        .with_fan((0..FAN_LEVELS.len()).map(interval).collect(), Color::Blue)
        .with(Layer::line("mean forecast", line(|w| &w.mean), Color::Blue))
        .with(Layer::line("observed", line(|w| &w.truth), Color::Ink))
}

fn error(metrics: &MetricsTable) -> Plot {
    let points = curves::column(metrics, "validation_rmse_mw");
    Plot::new("Validation error", Axis::linear("step"), Axis::linear("RMSE").unit("MW"))
        .shape(Shape::Half)
        .with(Layer::line("validation", points.clone(), Color::Orange))
        .with(Layer::points("validation", points, Color::Orange))
}

fn calibration(assessment: &Assessment) -> Plot {
    let share = |name: &str| Axis::linear(name).range(0.0, 1.0);
    Plot::new("Coverage of central intervals", share("nominal"), share("observed"))
        .shape(Shape::Square)
        .caption("Above the diagonal intervals are too wide, below it too narrow.")
        .with(Layer::rule("perfect", Rule::Diagonal))
        .with(Layer::line("forecast", assessment.calibration.clone(), Color::Blue))
        .with(Layer::points("forecast", assessment.calibration.clone(), Color::Blue))
}

fn pit(assessment: &Assessment) -> Plot {
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

fn by_lead(assessment: &Assessment, hours_per_step: f64) -> Plot {
    let points = |pick: fn(&(f64, f64)) -> f64| -> Vec<(f64, f64)> {
        let leads = assessment.by_lead.iter().enumerate();
        leads.map(|(lead, row)| ((lead + 1) as f64 * hours_per_step, pick(row))).collect()
    };
    Plot::new("Error by lead time", Axis::linear("lead time (h)"), Axis::linear("RMSE").unit("MW"))
        .shape(Shape::Half)
        .caption("Where both agree the network knows how wrong it is.")
        .with(Layer::line("error", points(|row| row.0), Color::Ink))
        .with(Layer::line("predicted deviation", points(|row| row.1), Color::Blue))
}

fn scores(assessment: &Assessment) -> Table {
    let number = |name: &str, decimals| Cell::number(assessment.score(name), decimals);
    let baseline = |name: &str, rmse: f64| {
        let mut row = vec![Cell::from(name), Cell::number(rmse, 0)];
        row.resize_with(6, || Cell::from("–"));
        row
    };
    Table {
        caption: "Scores on the test part; lower is better but for coverage.".into(),
        header: ["", "RMSE (MW)", "MAE (MW)", "CRPS (MW)", "90 % covers (%)", "mean std (MW)"]
            .map(Into::into)
            .into(),
        rows: vec![
            vec![
                Cell::from("forecast"),
                number("rmse_mw", 0),
                number("mae_mw", 0),
                number("crps_mw", 0),
                Cell::number(100.0 * assessment.score("coverage_90"), 1),
                number("mean_std_mw", 0),
            ],
            baseline("same time yesterday", assessment.yesterday),
            baseline("persistence", assessment.persistence),
        ],
        highlight: Some(0),
    }
}
