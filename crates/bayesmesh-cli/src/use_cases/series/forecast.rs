//! Series, divided in time and cut into windows: what all forecasts have in common.

use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use bayesmesh::Dataset as _;
use bayesmesh_data::series::{Encoding, Panel, Part, Period, SeriesWindows};

use super::fan::Extras;
use crate::exit::Usage;
use crate::models::Shape;
use crate::tasks::regression::Regression;
use crate::use_cases::{Groups, UseCase};

/// A use case whose examples are windows of series.
pub trait Forecasts: UseCase<Task = Regression, Data = SeriesWindows, Extras = Extras> {
    /// What is forecast: "grid load".
    const QUANTITY: &'static str;

    /// The data.
    fn forecast(&self) -> &Forecast;

    /// Reads series to forecast, which are like those that were learned from.
    fn read_panel(encoding: &Encoding, path: &Path) -> Result<Panel>;
}

/// Everything about the data of a forecast.
pub struct Forecast {
    /// The series as they are.
    pub panel: Panel,
    /// How networks see them.
    pub encoding: Encoding,
    /// Windows of each part.
    pub train: SeriesWindows,
    /// See `train`.
    pub valid: SeriesWindows,
    /// See `train`.
    pub test: SeriesWindows,
    /// What costs nothing.
    pub baselines: Vec<Baseline>,
    /// The unit of all series, if there is one.
    pub unit: &'static str,
    /// Digits after the point that a reader wants.
    pub decimals: usize,
}

/// A forecast that costs nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Baseline {
    /// What it is called.
    pub name: String,
    /// What the names of its scores begin with.
    pub key: String,
    /// After how many steps the series repeats itself; nothing for the last known value.
    pub season: Option<usize>,
}

impl Baseline {
    /// The last known value.
    pub fn persistence() -> Self {
        let name = "persistence".to_owned();
        Self { key: name.clone(), name, season: None }
    }

    /// The value so many steps before.
    pub fn seasonal(season: usize, period: Period) -> Self {
        let name = format!("{} before", period.words(season));
        Self { name, key: format!("seasonal_{season}"), season: Some(season) }
    }

    /// How far back the value is that it gives for a lead time, counted from 0.
    fn lag(&self, lead: usize) -> usize {
        match self.season {
            Some(season) => season * (lead / season + 1),
            None => lead + 1,
        }
    }
}

impl Forecast {
    /// Cuts the parts of a panel, whose encoding is learned.
    pub fn new(
        panel: Panel,
        encoding: Encoding,
        parts: [Vec<Part>; 3],
        baselines: Vec<Baseline>,
    ) -> Result<Self> {
        let series = Arc::new(encoding.encode(&panel)?);
        let cut = encoding.cut;
        let [train, valid, test] = parts;
        let windows = |parts, stride| {
            let cut = bayesmesh_data::series::Cut { stride, ..cut };
            SeriesWindows::new(Arc::clone(&series), parts, cut)
        };
        let (stride, unit, decimals) = (cut.stride, "", 0);
        let (train, valid, test) =
            (windows(train, stride), windows(valid, stride), windows(test, 1));
        for (part, name) in [(&train, "training"), (&valid, "validation"), (&test, "test")] {
            if part.is_empty() {
                return Err(Usage(format!(
                    "the {name} part of the series is shorter than a window of {} + {} values; use \
                     a longer series, smaller `data.inputs` or `data.outputs`, or another \
                     `data.split`",
                    cut.inputs, cut.outputs
                ))
                .into());
            }
        }
        Ok(Self { panel, encoding, train, valid, test, baselines, unit, decimals })
    }

    /// Steps of a forecast.
    pub fn outputs(&self) -> usize {
        self.encoding.cut.outputs
    }

    /// Steps that a time on a clock lasts; nothing where there is none.
    pub fn steps_in(&self, seconds: i64) -> Option<usize> {
        match self.encoding.period {
            Period::Seconds(step) => Some((seconds / step) as usize),
            _ => None,
        }
    }

    /// The task of all series. Where they have scales of their own, its numbers are multiples of
    /// the deviation of each.
    pub fn task(&self) -> Regression {
        let first = self.encoding.series[0].scale;
        let (unit, decimals) = (self.unit.to_owned(), self.decimals);
        match self.encoding.series.iter().all(|series| series.scale == first) {
            true => Regression {
                unit,
                decimals,
                scale: first.std,
                shift: first.mean,
                ..Regression::plain()
            },
            false => Regression::plain(),
        }
    }

    /// How many windows of what length there are.
    pub fn describe(&self) -> String {
        format!(
            "{} training, {} validation, {} test windows of {} + {} values",
            self.train.len(),
            self.valid.len(),
            self.test.len(),
            self.encoding.cut.inputs,
            self.encoding.cut.outputs
        )
    }

    /// Test windows by series, or by the time of day at which a forecast begins.
    pub fn groups(&self) -> Option<Groups> {
        const HOURS: i64 = 4;
        const MOST: usize = 20;
        let windows = 0..self.test.len();
        let series = &self.encoding.series;
        if (2..=MOST).contains(&series.len()) {
            let names = series.iter().map(|series| series.name.clone()).collect();
            let of = windows.map(|window| self.test.place(window).0).collect();
            return Some(Groups { by: "series", names, of });
        }
        // Several forecasts a day.
        self.steps_in(86_400).filter(|steps| *steps > 1)?;
        let names = (0..24 / HOURS)
            .map(|part| format!("{:02}–{:02} h", part * HOURS, (part + 1) * HOURS))
            .collect();
        let group = |window: usize| {
            let (series, start) = self.test.place(window);
            let time = self.panel.time(series, start + self.encoding.cut.inputs);
            (time.unwrap_or_default().rem_euclid(86_400) / (HOURS * 3600)) as usize
        };
        Some(Groups { by: "time of day (UTC)", names, of: windows.map(group).collect() })
    }

    /// The RMSE of a baseline over the test windows, in the unit of the task.
    pub fn baseline_rmse(&self, baseline: &Baseline) -> f64 {
        let cut = self.test.cut();
        let (mut squares, mut count) = (0.0, 0u64);
        for window in 0..self.test.len() {
            let (series, start) = self.test.place(window);
            let values = &self.test.series()[series].values;
            for lead in 0..cut.outputs {
                let time = start + cut.inputs + lead;
                let earlier = time.checked_sub(baseline.lag(lead)).map(|time| values[time]);
                let Some(earlier) = earlier.filter(|value| !value.is_nan()) else {
                    continue;
                };
                squares += (f64::from(values[time]) - f64::from(earlier)).powi(2);
                count += 1;
            }
        }
        self.task().scale * (squares / count as f64).sqrt()
    }
}

/// The task of one window: the scale of its series, from its level on.
pub fn task_of(encoding: &Encoding, panel: &Panel, series: usize, level: f32) -> Regression {
    let scale = encoding.of(&panel.series[series]).1;
    let shift = scale.mean + scale.std * f64::from(level);
    Regression { scale: scale.std, shift, ..Regression::plain() }
}

/// How many steps back a forecast looks at what has come true, to know how wide it must be.
pub fn look_back(period: Period) -> usize {
    const DAYS: i64 = 60;
    match period {
        Period::Seconds(step) if step < 86_400 => (DAYS * 86_400 / step) as usize,
        _ => DAYS as usize,
    }
}

/// The shape of a window with so many columns of the past and of the future, so many numbers of the
/// calendar, of so many series.
pub fn shape(
    [past, future]: [usize; 2],
    inputs: usize,
    outputs: usize,
    calendar: usize,
    series: usize,
) -> Shape {
    let categories = if series > 1 { vec![series + 1] } else { Vec::new() };
    let width = past * inputs + future * outputs + calendar + categories.len();
    Shape { inputs: vec![width], outputs, categories, history: Some([past, inputs]) }
}
