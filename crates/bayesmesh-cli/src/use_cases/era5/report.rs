//! The report of a weather forecast.

use bayesmesh_report::{
    Axis, Block, Coast, Color, Layer, MapGrid, MapPanel, MapScale, MapSeries, MapTime, MapVariable,
    Plot, Report, Rule, Section, Shape, Stroke,
};

use super::Era5;
use super::forecast::{BASELINES, Extras, MOST_SHOWN, Shown, date};
use crate::tasks::fields::{self, Field, Fields, headline, scores, training};
use crate::tasks::page;
use crate::use_cases::Reported;

/// The page of a run.
pub fn report(run: &Reported<'_, Era5>) -> Report {
    let Reported { case, assessment, extras, .. } = *run;
    let task = case.task();
    let hours = case.parts.test.config().lead / 3600;
    let lead = format!(
        "A Bayesian network forecasts the weather {hours} hours ahead, {} variables on a grid of \
         {}, and says how sure it is. Scores are those of times that it has not seen, from {} \
         draws.",
        task.fields.len(),
        case.parts.test.grid(),
        assessment.draws
    );
    let mut sections = Vec::new();
    if let Some(shown) = &extras.shown {
        sections.push(
            Section::new("Forecast")
                .text(
                    "A draw is a trajectory: it goes on from what it has predicted. Where the \
                     spread is wide, the error should be large.",
                )
                .with(Block::Maps(maps(case, &task, shown))),
        );
    }
    let mut baselines = extras.named_baselines();
    if extras.best_crps.iter().all(Option::is_some) {
        let best = extras.best_crps.iter().map(|best| best.unwrap_or(f64::NAN));
        baselines.push(("best possible CRPS", best.collect()));
    }
    sections.push(curves(&task, extras));
    sections.push(fields::calibration(&task, assessment));
    sections.push(training(run.metrics));
    sections.push(Section::new("Scores").with(Block::Table(scores(&task, assessment, &baselines))));
    let left_out = case.parts.train.left_out().len();
    let note = (left_out > 0)
        .then(|| format!("{left_out} times were left out: some of their values are not numbers."));
    page(run, lead, headline(assessment), sections, note)
}

/// Maps of the first variables, lead time by lead time.
fn maps(case: &Era5, task: &Fields, shown: &Shown) -> MapSeries {
    let test = &case.parts.test;
    let grid = test.grid();
    let hours = test.config().lead as f64 / 3600.0;
    let title = format!("Forecast from {}", date(shown.origin));
    let times = (1..=shown.steps.len()).map(|step| {
        let hours = step as f64 * hours;
        MapTime::new(hours).valid(shown.origin as f64 + 3600.0 * hours)
    });
    let maps = MapSeries::new(title, MapGrid::new(grid.latitudes(), grid.longitudes().len()))
        .coast(match test.land() {
            Some(land) => Coast::Mask(land.to_vec()),
            None => Coast::Earth,
        })
        .times(times);
    let points = grid.points();
    task.fields.iter().take(MOST_SHOWN).enumerate().fold(maps, |maps, (index, field)| {
        let part = |values: &[f32]| values[index * points..][..points].to_vec();
        let each = |pick: fn(&super::forecast::ShownStep) -> &Vec<f32>| -> Vec<Vec<f32>> {
            shown.steps.iter().map(|step| part(pick(step))).collect()
        };
        let (truth, mean) = (each(|step| &step.truth), each(|step| &step.mean));
        let errors: Vec<Vec<f32>> = truth
            .iter()
            .zip(&mean)
            .map(|(truth, mean)| mean.iter().zip(truth).map(|(m, t)| m - t).collect())
            .collect();
        // Winds have a direction, and zero means something.
        let scale = match field.name.contains("component_of_wind") {
            true => MapScale::SignedValue,
            false => MapScale::Value,
        };
        let error = errors.into_iter().fold(
            MapPanel::new("Error of the mean", MapScale::Error),
            |panel, error| {
                let squares = error.iter().zip(case.layout.cells());
                let square: f64 = squares.map(|(e, w)| f64::from(*w) * f64::from(*e).powi(2)).sum();
                let rmse = Field::shown((square / points as f64).sqrt());
                panel.field(error, format!("RMSE {rmse} {}", field.unit))
            },
        );
        maps.with(
            MapVariable::new(&field.name)
                .unit(&field.unit)
                .with(MapPanel::new("Truth", scale).fields(truth))
                .with(MapPanel::new("Mean of the draws", scale).fields(mean))
                .with(MapPanel::new("Spread", MapScale::Spread).fields(each(|step| &step.spread)))
                .with(error),
        )
    })
}

/// How errors grow with the lead time.
fn curves(task: &Fields, extras: &Extras) -> Section {
    let mut section = Section::new("Lead times").text(
        "Errors of forecasts that go on from themselves, beside a forecast that nothing changes, \
         and one that all is as usual. Spread and error should be equal.",
    );
    for (index, field) in task.fields.iter().enumerate().take(MOST_SHOWN) {
        let points = |pick: &dyn Fn(&super::forecast::Lead) -> f64| -> Vec<(f64, f64)> {
            extras.leads.iter().map(|lead| (lead.hours, pick(lead))).collect()
        };
        let colors = [Color::Orange, Color::Green];
        let axis = Axis::linear("RMSE");
        let axis = if field.unit.is_empty() { axis } else { axis.unit(&field.unit) };
        let mut plot = Plot::new(&field.name, Axis::linear("lead time").unit("h"), axis)
            .shape(Shape::Half)
            .with(Layer::line("mean of the draws", points(&|l| l.rmse[index]), Color::Blue))
            .with(
                Layer::line("spread", points(&|l| l.spread[index]), Color::Blue)
                    .stroke(Stroke::Dashed),
            );
        for (number, name) in BASELINES.into_iter().enumerate() {
            let line = points(&|l| l.baselines[number][index]);
            plot = plot.with(Layer::line(name, line, colors[number]));
        }
        section = section.with(Block::Plot(plot.with(Layer::rule("", Rule::Horizontal(0.0)))));
    }
    section
}
