//! What reports of classifications have in common.

use bayesmesh_report::{
    Axis, Block, Cell, Color, KeyFigure, Layer, Plot, Report, Rule, Section, Shape, Table,
    format_number,
};

use bayesmesh::metrics::percent;

use super::{Classification, ClassificationAssessment, Predictions};
use crate::run::MetricsTable;
use crate::tasks::{Assessment as _, curves, page};
use crate::use_cases::{Reported, UseCase};

/// The page of a classification that has nothing more to show.
pub(super) fn report<U: UseCase<Task = Classification>>(run: &Reported<'_, U>) -> Report {
    let assessment = run.assessment;
    let lead = format!(
        "A Bayesian network says which class an example is of and how sure it is. Scores are those \
         of {} {} that it has not seen, from {} draws.",
        format_number(assessment.predictions.len() as f64, 0),
        U::EXAMPLES,
        assessment.draws
    );
    let sections = vec![
        training(run.metrics),
        Section::new("Calibration")
            .with(Block::Plot(reliability(assessment)))
            .with(Block::Plot(entropies(&assessment.predictions)))
            .with_all(sets(assessment).map(Block::Table)),
        Section::new("Classes").with(Block::Table(confusion(assessment))),
        Section::new("Scores").with(Block::Table(scores(assessment))),
    ];
    page(run, lead, headline(assessment), sections, None)
}

/// Accuracy, NLL and calibration error.
pub fn headline(assessment: &ClassificationAssessment) -> Vec<KeyFigure> {
    let classes = assessment.classes.len() as f64;
    let percent = |name: &str| format!("{:.1}", 100.0 * assessment.score(name));
    vec![
        KeyFigure::new("Accuracy", percent("accuracy"))
            .unit("%")
            .note(format!("by chance: {:.0}", 100.0 / classes)),
        KeyFigure::new("NLL", format!("{:.3}", assessment.score("nll")))
            .unit("nats")
            .note(format!("by chance: {:.3}", classes.ln())),
        KeyFigure::new("Calibration error", percent("ece")).unit("%").note(
            match &assessment.sets {
                Some(_) => format!("before calibration: {}", percent("ece_raw")),
                None => "expected, 15 bins".to_owned(),
            },
        ),
    ]
}

/// Loss, validation scores and the distance to the prior.
pub fn training(metrics: &MetricsTable) -> Section {
    let score = |title: &str, axis: Axis, name: &str, unit: f64| {
        let points = curves::column(metrics, name).into_iter().map(|(x, y)| (x, unit * y));
        let points: Vec<(f64, f64)> = points.collect();
        Plot::new(title, Axis::linear("step"), axis)
            .shape(Shape::Half)
            .with(Layer::line("validation", points.clone(), Color::Orange))
            .with(Layer::points("validation", points, Color::Orange))
    };
    let nll = score("Validation NLL", Axis::linear("NLL").unit("nats"), "validation_nll", 1.0);
    let accuracy = score(
        "Validation accuracy",
        Axis::linear("accuracy").unit("%"),
        "validation_accuracy",
        100.0,
    );
    let section = Section::new("Training");
    match curves::column(metrics, "validation_nll").is_empty() {
        true => section.with(Block::Plot(curves::data_term(metrics).shape(Shape::Wide))),
        false => section
            .with(Block::Plot(curves::data_term(metrics)))
            .with(Block::Plot(nll))
            .with(Block::Plot(accuracy))
            .with(Block::Plot(curves::divergence(metrics))),
    }
}

/// Confidence against accuracy.
pub fn reliability(assessment: &ClassificationAssessment) -> Plot {
    let rows = &assessment.reliability;
    let mut edges: Vec<f64> = rows.iter().map(|row| row.lower).collect();
    edges.extend(rows.last().map(|row| row.upper));
    let accuracy: Vec<f64> = rows.iter().map(|row| row.accuracy).collect();
    let examples = assessment.predictions.len() as f64;
    let shares = rows.iter().map(|row| (row.lower, row.count / examples));
    let end = rows.last().map(|row| (row.upper, row.count / examples));
    let before = assessment.reliability_raw.iter().flatten();
    let before: Vec<(f64, f64)> = before.map(|row| (row.confidence, row.accuracy)).collect();
    let share = |name: &str| Axis::linear(name).range(0.0, 1.0);
    Plot::new("Reliability", share("confidence"), share("accuracy"))
        .shape(Shape::Square)
        .caption(format!(
            "Expected calibration error {:.1} %, unweighted {:.1} %, largest {:.1} %, over classes \
             {:.1} %. Below the diagonal it is surer than it should be.",
            100.0 * assessment.score("ece"),
            100.0 * assessment.score("unweighted_calibration_error"),
            100.0 * assessment.score("maximum_calibration_error"),
            100.0 * assessment.score("classwise_calibration_error"),
        ))
        .with(Layer::histogram("accuracy", &edges, &accuracy, Color::Blue))
        .with(Layer::steps("share of examples", shares.chain(end), Color::Orange))
        .with(Layer::points("before calibration", before, Color::Ink))
        .with(Layer::rule("perfect", Rule::Diagonal))
}

/// How sure the network is where it is right and where it is wrong.
pub fn entropies(predictions: &Predictions) -> Plot {
    const BINS: usize = 20;
    let top = (predictions.classes() as f64).ln();
    let shares = |right: bool| -> Vec<f64> {
        let mut counts = [0.0; BINS];
        for image in (0..predictions.len()).filter(|&image| predictions.is_right(image) == right) {
            let bin = (predictions.entropy[image] / top * BINS as f64) as usize;
            counts[bin.min(BINS - 1)] += 1.0;
        }
        let all: f64 = counts.iter().sum();
        counts.iter().map(|count| 100.0 * count / all).collect()
    };
    let edges: Vec<f64> = (0..=BINS).map(|edge| edge as f64 / BINS as f64 * top).collect();
    let wrong = shares(false);
    let steps = edges.iter().copied().zip(wrong.iter().chain(wrong.last()).copied());
    Plot::new(
        "Entropy of predictions",
        Axis::linear("entropy").unit("nats").range(0.0, top),
        Axis::linear("share").unit("%"),
    )
    .shape(Shape::Square)
    .caption("Each group sums to 100 %. The further apart, the better mistakes can be foreseen.")
    .with(Layer::histogram("right", &edges, &shares(true), Color::Blue))
    .with(Layer::steps("wrong", steps, Color::Orange))
}

/// What the examples of each class are taken for.
pub fn confusion(assessment: &ClassificationAssessment) -> Table {
    let row = |class: usize| {
        let counts = &assessment.confusion[class];
        let all: usize = counts.iter().sum();
        let cells = counts.iter().enumerate().map(|(taken, &count)| {
            let share = count as f64 / all as f64;
            // Mistakes are rarer than hits, and what is looked for.
            let shade = if taken == class { 0.6 * share } else { (2.0 * share).min(0.6) };
            Cell::shaded(100.0 * share, 0, shade)
        });
        std::iter::once(Cell::from(assessment.classes[class].as_str())).chain(cells).collect()
    };
    Table {
        caption: "Rows are what is there, columns what it is taken for, in percent of the row."
            .into(),
        header: std::iter::once(String::new()).chain(assessment.classes.iter().cloned()).collect(),
        rows: (0..assessment.classes.len()).map(row).collect(),
        highlight: None,
    }
}

/// Sets of classes that hold the right one as often as they say; nothing where there are none.
pub fn sets(assessment: &ClassificationAssessment) -> Option<Table> {
    let sets = assessment.sets.as_ref()?;
    let rows = assessment.levels.iter().map(|level| {
        let level = percent(*level);
        let score = |name: &str| assessment.score(&format!("{name}_{level}"));
        vec![
            Cell::from(level.as_str()),
            Cell::number(100.0 * score("set_coverage"), 1),
            Cell::number(score("set_size"), 2),
        ]
    });
    Some(Table {
        caption: format!(
            "Sets of classes, and how often they hold the right one. Logits are divided by a \
             temperature of {:.3}.",
            sets.temperature()
        ),
        header: ["Level (%)", "Holds the class (%)", "Classes in it"].map(Into::into).into(),
        rows: rows.collect(),
        highlight: None,
    })
}

/// Name, label, meaning, unit and decimals of a score.
type ScoreRow = (&'static str, &'static str, &'static str, f64, usize);

/// The scores with what they are.
pub fn scores(assessment: &ClassificationAssessment) -> Table {
    let rows: [ScoreRow; 11] = [
        ("accuracy", "Accuracy (%)", "share of right predictions", 100.0, 2),
        ("nll", "NLL (nats)", "negative log-likelihood of the mean probabilities", 1.0, 4),
        ("brier", "Brier score", "squared error of the probabilities, 0 to 2", 1.0, 4),
        ("ece", "ECE (%)", "calibration error of the confidence, weighted by images", 100.0, 2),
        ("unweighted_calibration_error", "MACE (%)", "the same, every bin counting once", 100.0, 2),
        ("maximum_calibration_error", "MCE (%)", "the same, the worst bin", 100.0, 2),
        ("classwise_calibration_error", "Classwise ECE (%)", "mean over classes", 100.0, 2),
        ("entropy_right", "Entropy, right (nats)", "mean over right predictions", 1.0, 4),
        ("entropy_wrong", "Entropy, wrong (nats)", "mean over wrong predictions", 1.0, 4),
        (
            "mutual_information",
            "Disagreement (nats)",
            "mutual information of class and weights",
            1.0,
            4,
        ),
        ("error_auroc", "AUROC, mistakes", "wrong against right predictions by entropy", 1.0, 4),
    ];
    let row = |&(name, label, meaning, unit, decimals): &ScoreRow| {
        let value = Cell::number(unit * assessment.score(name), decimals);
        vec![Cell::from(label), value, Cell::from(meaning)]
    };
    Table {
        caption: format!("Scores on the test {}.", assessment.examples),
        header: ["Score", "Value", "What it is"].map(Into::into).into(),
        rows: rows.iter().map(row).collect(),
        highlight: Some(0),
    }
}
