//! The report of a load forecast.

use bayesmesh_report::{
    Axis, Block, Cell, Color, Interval, Layer, Plot, Report, Section, Stroke, Table, format_number,
};

use super::fan::{Extras, FanWindow, LEVELS};
use super::{BASELINES, Load};
use crate::tasks::page;
use crate::tasks::regression::{
    Outputs, Regression, RegressionAssessment, calibration, headline, scores, training,
};
use crate::use_cases::{Reported, UseCase as _};

/// The page of a run.
pub fn report(run: &Reported<'_, Load>) -> Report {
    let Reported { case: load, assessment, extras, .. } = *run;
    let task = load.task();
    let hours = |steps: usize| steps as f64 * f64::from(load.series.step_seconds) / 3600.0;
    let [inputs, outputs] = [load.inputs, load.outputs].map(|n| format_number(hours(n), 0));
    let lead = format!(
        "A Bayesian network forecasts the next {outputs} hours of grid load from the last {inputs} \
         and says how sure it is. Scores are those of data that it has not seen."
    );
    let yesterday = format!("{}: {}", BASELINES[0], format_number(extras.baselines[0], 0));
    let table = scores(&task, assessment, "forecast", &extras.named_baselines());
    let leads = Outputs { name: "lead time", label: "lead time (h)", step: hours(1) };
    let sections = vec![
        Section::new("Forecast")
            .text(format!(
                "Three days of the test part. A forecast of {outputs} hours is made from what was \
                 known at its beginning, then the next one; so the fan opens again and again."
            ))
            .with(Block::Plot(fan(extras, assessment.draws)))
            .with(Block::Plot(paths(extras)))
            .with(Block::Table(joint(&task, assessment))),
        training(&task, run.metrics),
        calibration(&task, assessment, &leads),
        Section::new("Scores").with(Block::Table(table)),
    ];
    let repairs = load.repairs.as_ref().filter(|repairs| !repairs.is_clean()).map(|repairs| {
        format!(
            "{} values of the series were repaired; `bayesmesh data check load FILE` lists them.",
            repairs.replaced()
        )
    });
    page(run, lead, headline(&task, assessment, Some(yesterday)), sections, repairs)
}

fn fan(extras: &Extras, draws: usize) -> Plot {
    let interval = |index: usize| {
        let points = extras.fan.iter().flat_map(|window| {
            let [lower, upper] = &window.intervals[index];
            let ends = lower.iter().copied().zip(upper.iter().copied());
            window.times.iter().zip(ends).map(|(&time, (low, high))| (time, low, high))
        });
        Interval { level: LEVELS[index], points: points.collect() }
    };
    let line = |pick: fn(&FanWindow) -> &Vec<f64>| -> Vec<(f64, f64)> {
        let windows = extras.fan.iter();
        windows.flat_map(|w| w.times.iter().copied().zip(pick(w).iter().copied())).collect()
    };
    Plot::new("Load", Axis::time("time, UTC"), Axis::linear("load").unit("MW"))
        .caption(format!("Mean and central intervals of {draws} draws, noise included."))
        .with_fan((0..LEVELS.len()).map(interval).collect(), Color::Blue)
        .with(Layer::line("mean forecast", line(|w| &w.mean), Color::Blue))
        .with(Layer::line("observed", line(|w| &w.truth), Color::Ink))
}

/// Sample paths of a day, and the band around all of them.
fn paths(extras: &Extras) -> Plot {
    let leads = extras.fan.first().map_or(1, |window| window.times.len().max(1));
    let span = extras.fan.first().map_or(0.0, |window| {
        let last = window.times.len() - 1;
        (window.times[last] - window.times[0]) / last.max(1) as f64 * leads as f64
    });
    let day = &extras.fan[..extras.fan.len().min((86_400.0 / span.max(1.0)).ceil() as usize)];
    let mut plot = Plot::new("Paths", Axis::time("time, UTC"), Axis::linear("load").unit("MW"))
        .caption(format!(
            "A day of them: {} joint samples of each forecast, and the band that holds a whole \
             forecast nine times out of ten.",
            super::fan::PATHS
        ));
    for window in day {
        if let Some([lower, upper]) = &window.band {
            let ends = lower.iter().copied().zip(upper.iter().copied());
            let points =
                window.times.iter().zip(ends).map(|(&time, (low, high))| (time, low, high));
            let label = format!("{:.0} % band", 100.0 * super::fan::BAND);
            plot = plot.with(Layer::band(label, points.collect::<Vec<_>>(), Color::Blue));
        }
    }
    for window in day {
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
