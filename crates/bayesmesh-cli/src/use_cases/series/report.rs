//! The report of a forecast.

use bayesmesh_data::series::Period;
use bayesmesh_report::{
    Axis, Block, Cell, Color, Interval, Layer, Plot, Report, Section, Stroke, Table, format_number,
};

use super::fan::{Extras, Fan, FanWindow, LEVELS};
use super::forecast::Forecasts;
use crate::tasks::page;
use crate::tasks::regression::{
    Outputs, Regression, RegressionAssessment, calibration, headline, scores, training,
};
use crate::use_cases::Reported;

/// The page of a run.
pub fn report<U: Forecasts>(run: &Reported<'_, U>, notes: Option<String>) -> Report {
    let Reported { case, assessment, extras, .. } = *run;
    let forecast = case.forecast();
    let (task, period) = (case.task(), forecast.encoding.period);
    let cut = forecast.encoding.cut;
    let [inputs, outputs] = [cut.inputs, cut.outputs].map(|steps| period.words(steps));
    let lead = format!(
        "A Bayesian network forecasts the next {outputs} of {} from the last {inputs} and says how \
         sure it is. Scores are those of data that it has not seen.",
        U::QUANTITY
    );
    let beside = extras
        .baselines
        .first()
        .map(|(name, _, rmse)| format!("{name}: {}", format_number(*rmse, task.decimals)));
    let table = scores(&task, assessment, "forecast", &extras.named_baselines());
    let (unit, step) = period.lead();
    let leads = Outputs { name: "lead time", label: format!("lead time ({unit})"), step };
    let mut section = Section::new("Forecast").text(format!(
        "Some time of the test part. A forecast of {outputs} is made from what was known at its \
         beginning, then the next one; so the fan opens again and again."
    ));
    for fan in &extras.fans {
        section = section.with(Block::Plot(chart(fan, &task, period, assessment.draws)));
        section = section.with(Block::Plot(paths(fan, &task, period)));
    }
    if cut.outputs > 1 {
        section = section.with(Block::Table(joint(&task, assessment)));
    }
    let mut of_scores = Section::new("Scores").with(Block::Table(table));
    if !extras.by_series.is_empty() {
        of_scores = of_scores.with(Block::Table(by_series(extras, &task)));
    }
    let sections = vec![
        section,
        training(&task, run.metrics),
        calibration(&task, assessment, &leads),
        of_scores,
    ];
    page(run, lead, headline(&task, assessment, beside), sections, notes)
}

/// The axis of times, or of steps where there are none.
fn time_axis(period: Period) -> Axis {
    match period {
        Period::Counts(_) => Axis::linear("step"),
        _ => Axis::time("time, UTC"),
    }
}

/// The axis of values; a series of several is named by it.
fn value_axis(fan: &Fan, task: &Regression) -> Axis {
    let label = if fan.series.is_empty() { "value" } else { &fan.series };
    match task.unit.as_str() {
        "" => Axis::linear(label),
        unit => Axis::linear(label).unit(unit),
    }
}

fn chart(fan: &Fan, task: &Regression, period: Period, draws: usize) -> Plot {
    let interval = |index: usize| {
        let points = fan.windows.iter().flat_map(|window| {
            let [lower, upper] = &window.intervals[index];
            let ends = lower.iter().copied().zip(upper.iter().copied());
            window.times.iter().zip(ends).map(|(&time, (low, high))| (time, low, high))
        });
        Interval { level: LEVELS[index], points: points.collect() }
    };
    let line = |pick: fn(&FanWindow) -> &Vec<f64>| -> Vec<(f64, f64)> {
        let windows = fan.windows.iter();
        windows.flat_map(|w| w.times.iter().copied().zip(pick(w).iter().copied())).collect()
    };
    let title = if fan.series.is_empty() { "Forecast" } else { &fan.series };
    Plot::new(title, time_axis(period), value_axis(fan, task))
        .caption(format!("Mean and central intervals of {draws} draws, noise included."))
        .with_fan((0..LEVELS.len()).map(interval).collect(), Color::Blue)
        .with(Layer::line("mean forecast", line(|w| &w.mean), Color::Blue))
        .with(Layer::line("observed", line(|w| &w.truth), Color::Ink))
}

/// Sample paths of a season or a forecast, and the band around all of them.
fn paths(fan: &Fan, task: &Regression, period: Period) -> Plot {
    // A third of what the chart above has.
    let some = &fan.windows[..fan.windows.len().div_ceil(3)];
    let mut plot = Plot::new("Paths", time_axis(period), value_axis(fan, task)).caption(format!(
        "The first of them: {} joint samples of each forecast, and the band that holds a whole \
         forecast nine times out of ten.",
        super::fan::PATHS
    ));
    for window in some {
        if let Some([lower, upper]) = &window.band {
            let ends = lower.iter().copied().zip(upper.iter().copied());
            let points =
                window.times.iter().zip(ends).map(|(&time, (low, high))| (time, low, high));
            let label = format!("{:.0} % band", 100.0 * super::fan::BAND);
            plot = plot.with(Layer::band(label, points.collect::<Vec<_>>(), Color::Blue));
        }
    }
    for window in some {
        for path in &window.paths {
            let points: Vec<(f64, f64)> =
                window.times.iter().copied().zip(path.iter().copied()).collect();
            plot = plot.with(Layer::line("path", points, Color::Blue).stroke(Stroke::Thin));
        }
        let observed: Vec<(f64, f64)> =
            window.times.iter().copied().zip(window.truth.iter().copied()).collect();
        plot = plot.with(Layer::line("observed", observed, Color::Ink));
    }
    plot
}

/// How far off each series is.
fn by_series(extras: &Extras, task: &Regression) -> Table {
    let row = |(name, rmse): &(String, f64)| {
        vec![Cell::from(name.as_str()), Cell::from(format_number(*rmse, task.decimals).as_str())]
    };
    Table {
        caption:
            "Each series in its own unit. The scores above are in standard deviations of each \
                  series where these have scales of their own."
                .into(),
        header: vec!["Series".into(), "RMSE".into()],
        rows: extras.by_series.iter().map(row).collect(),
        highlight: None,
    }
}

/// Whether paths hang together as the truth does.
fn joint(task: &Regression, assessment: &RegressionAssessment) -> Table {
    let row = |label: &str, name: &str| {
        let number = |name: &str| {
            let name = format!("{name}{}", task.suffix());
            let score = assessment.scores.iter().find(|score| score.name == name);
            score.map_or(Cell::from("–"), |score| {
                let [value, error] = [score.value, score.se_examples].map(|x| task.shown(x));
                Cell::from(format!("{value} ± {error}").as_str())
            })
        };
        vec![Cell::from(label), number(name), number(&format!("{name}_shuffled"))]
    };
    Table {
        caption: "Scores of whole paths; lower is better. Shuffled over paths at each lead time \
                  they have the same intervals and no dependence. ± over examples."
            .into(),
        header: vec![String::new(), task.label("paths"), task.label("shuffled")],
        rows: vec![row("energy score", "energy_score"), row("variogram score", "variogram_score")],
        highlight: None,
    }
}
