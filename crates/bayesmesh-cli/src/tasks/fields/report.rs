//! What reports of fields have in common.

use bayesmesh_report::{
    Axis, Block, Cell, Color, KeyFigure, Layer, Plot, Report, Rule, Section, Shape, Table,
};

use super::{Field, Fields, FieldsAssessment};
use crate::run::MetricsTable;
use crate::tasks::{Assessment as _, curves, page};
use crate::use_cases::{Reported, UseCase};

/// The page of a forecast that has nothing more to show.
pub(super) fn report<U: UseCase<Task = Fields>>(task: &Fields, run: &Reported<'_, U>) -> Report {
    let assessment = run.assessment;
    let lead = format!(
        "A Bayesian network predicts fields and says how sure it is. Scores are those of {} that \
         it has not seen, from {} draws.",
        U::EXAMPLES,
        assessment.draws
    );
    let table = Block::Table(scores(task, assessment, &[]));
    let sections = vec![
        training(run.metrics),
        calibration(task, assessment),
        Section::new("Scores").with(table),
    ];
    page(run, lead, headline(assessment), sections, None)
}

/// Error, CRPS and spread of all variables together.
pub fn headline(assessment: &FieldsAssessment) -> Vec<KeyFigure> {
    let figure = |label: &str, name: &str, note: &str| {
        KeyFigure::new(label, format!("{:.3}", assessment.score(name))).note(note)
    };
    vec![
        figure("Test RMSE", "rmse", "of the mean, in deviations of the variables"),
        figure("Fair CRPS", "crps", "error of the whole distribution"),
        figure("Spread / skill", "spread_skill", "1 is honest, less is too sure"),
    ]
}

/// Loss and validation scores.
pub fn training(metrics: &MetricsTable) -> Section {
    let plot = |title: &str, name: &str, label: &str| {
        let points = curves::column(metrics, &format!("validation_{name}"));
        Plot::new(title, Axis::linear("step"), Axis::linear(label))
            .shape(Shape::Half)
            .with(Layer::line("validation", points.clone(), Color::Orange))
            .with(Layer::points("validation", points, Color::Orange))
    };
    Section::new("Training")
        .with(Block::Plot(curves::data_term(metrics)))
        .with(Block::Plot(plot("Validation score", "crps", "CRPS")))
        .with(Block::Plot(plot("Validation error", "rmse", "RMSE")))
        .with(Block::Plot(
            plot("Spread over skill", "spread_skill", "ratio")
                .with(Layer::rule("honest", Rule::Horizontal(1.0))),
        ))
}

/// Rank histograms of the first variables, and spread beside error.
pub fn calibration(task: &Fields, assessment: &FieldsAssessment) -> Section {
    /// More would not be looked at.
    const MOST: usize = 6;
    let mut section = Section::new("Calibration").text(
        "An honest ensemble is as wide as its mean is wrong, and the truth is as likely to be its \
         lowest member as any other.",
    );
    let both = task.fields.iter().zip(&assessment.by_field).take(MOST);
    for (field, found) in both {
        let ranks = found.rank_histogram.len();
        let edges: Vec<f64> = (0..=ranks).map(|edge| edge as f64 - 0.5).collect();
        let heights: Vec<f64> =
            found.rank_histogram.iter().map(|share| share * ranks as f64).collect();
        let title = format!("Rank of the truth: {}", field.name);
        let plot = Plot::new(title, Axis::linear("rank among the draws"), Axis::linear("share"))
            .shape(Shape::Half)
            .caption(format!(
                "Flat where draws and truth cannot be told apart; a U where they are too close \
                 together. Spread over skill {:.2}.",
                found.spread_skill.value
            ))
            .with(Layer::histogram("test part", &edges, &heights, Color::Blue))
            .with(Layer::rule("flat", Rule::Horizontal(1.0)));
        section = section.with(Block::Plot(plot));
    }
    section
}

/// The scores of every variable, beside those of what costs nothing.
pub fn scores(task: &Fields, assessment: &FieldsAssessment, others: &[(&str, Vec<f64>)]) -> Table {
    let rows = task.fields.iter().zip(&assessment.by_field).enumerate();
    let rows = rows.map(|(index, (field, found))| {
        let error = |score: &bayesmesh::metrics::Score| {
            let [value, error] = [score.value, score.se_examples].map(Field::shown);
            Cell::from(format!("{value} ± {error}").as_str())
        };
        let mut row = vec![Cell::from(field.label(&field.name).as_str()), error(&found.rmse)];
        let other = |values: &Vec<f64>| Cell::from(Field::shown(values[index]).as_str());
        row.extend(others.iter().map(|(_, values)| other(values)));
        row.push(error(&found.crps));
        row.push(Cell::from(Field::shown(found.spread.value).as_str()));
        row.push(Cell::number(found.spread_skill.value, 2));
        row
    });
    let mut header = vec![String::new(), "RMSE".to_owned()];
    header.extend(others.iter().map(|(name, _)| (*name).to_owned()));
    header.extend(["fair CRPS", "spread", "spread / skill"].map(str::to_owned));
    Table {
        caption: "Scores on the test part, weighted by area, with their standard error over \
                  examples, which are not independent in time."
            .into(),
        header,
        rows: rows.collect(),
        highlight: None,
    }
}
