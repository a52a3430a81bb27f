//! The end of every training and evaluation: scores, report, table and result.

use anyhow::Result;
use bayesmesh::metrics::Score;
use bayesmesh::trainer::Time;
use bayesmesh::{Network, Posterior as _};
use bayesmesh_report::format_number;
use serde_json::{Map, Value, json};

use crate::args::Draws;
use crate::job::Job;
use crate::recipe::Recipe;
use crate::run::{MetricsTable, RunFolder};
use crate::say::{self, say};
use crate::tasks::{Assessment as _, AssessmentOf, RAW, Task as _};
use crate::use_cases::{CaseTrainer, InputOf, Reported, Trained, UseCase};

/// The file of a run with its scores.
const EVALUATION: &str = "evaluation.json";

/// What training took in this process.
#[derive(Clone, Copy, Debug, Default)]
pub struct Training {
    /// Seconds, where there was any.
    pub seconds: Option<f64>,
    /// Steps.
    pub steps: usize,
}

impl Training {
    /// What a step took, and how much of it was spent waiting, for people.
    fn each_step(&self, time: &Time) -> String {
        if self.steps == 0 {
            return String::new();
        }
        let each = time.seconds / self.steps as f64;
        let each = match each < 1.0 {
            true => format!("{:.2} ms", 1e3 * each),
            false => format!("{each:.2} s"),
        };
        let data = 100.0 * time.waiting();
        let mut text = format!(": {each} a step, of which {data:.1} % waiting for data");
        if time.communication > 0.0 {
            text += &format!(" and {:.1} % for other ranks", 100.0 * time.exposure());
        }
        text
    }
}

/// How long a step's gradients were on their way to other ranks, and how much of it cost time.
/// Nothing where there was one rank.
fn communication(time: &Time, steps: usize) -> Option<String> {
    let each = |seconds: f64| format!("{:.2} ms", 1e3 * seconds / steps.max(1) as f64);
    (time.communication > 0.0).then(|| {
        format!(
            "{} a step, of which {} ({:.1} % of the step) were not hidden behind computing",
            each(time.communication),
            each(time.exposed),
            100.0 * time.exposure()
        )
    })
}

/// Scores, report, table and JSON object of a trained network. All processes score; the one that
/// has the folder writes and has a result.
pub fn finish<U: UseCase, N: Network<Input = InputOf<U>> + 'static>(
    job: &Job,
    folder: Option<&RunFolder>,
    recipe: &Recipe,
    case: &U,
    trainer: &CaseTrainer<U, N>,
    draws: Draws,
    training: Training,
) -> Result<Value> {
    job.agree_on_examples(case.test())?;
    let (draws, assessment) = assess(recipe, case, trainer, draws)?;
    let trained = Trained { case, recipe, trainer, draws };
    let extras = case.extras(&trained, &assessment)?;
    let Some(folder) = folder else {
        return Ok(Value::Null);
    };
    let digest = trainer.digest();
    let metrics = MetricsTable::read(folder.metrics())?;
    let page = case.report(&Reported {
        case,
        recipe,
        assessment: &assessment,
        extras: &extras,
        metrics: &metrics,
        facts: &facts(job, &trained, &digest, training),
        seconds: training.seconds,
    });
    let path = folder.write("report.html", page.to_html())?;

    let mut scores = assessment.scores().to_vec();
    scores.extend(U::extra_scores(&extras));
    let test = tree(&scores, |score| json!(score.value));
    let mut result = outcome::<U, N>(folder, trainer, &digest);
    result["test"] = test.clone().into();
    result["draws"] = json!(draws);
    result["report"] = say::path(&path);
    if let Some(seconds) = training.seconds {
        result["seconds"] = json!(seconds);
        let time = trainer.time();
        result["waiting"] = json!(time.waiting());
        result["communication_seconds"] = json!(time.communication);
        result["exposed_communication"] = json!(time.exposure());
    }
    let mut evaluation = json!({
        "step": trainer.step(),
        "draws": draws,
        "test": test,
        "standard_errors": standard_errors(&scores),
    });
    for (name, value) in assessment.details().into_iter().chain(U::details(&extras)) {
        evaluation[name] = value;
    }
    folder.write(EVALUATION, format!("{evaluation:#}\n"))?;

    say!("\n{}", case.table(&assessment, &extras));
    match training.seconds {
        Some(seconds) if training.steps > 0 => {
            let each = training.each_step(&trainer.time());
            say!("trained in {}{each}; digest {}", say::seconds(seconds), &digest[..12]);
        }
        Some(_) => say!("nothing was left to train: the run has had its {} steps", trainer.step()),
        None => {}
    }
    say!("report: {}", path.display());
    Ok(result)
}

/// Scores a network with so many draws, or with as many as it takes: until no score depends on the
/// draws by more than a tenth of what it depends on the examples.
fn assess<U: UseCase, N: Network<Input = InputOf<U>> + 'static>(
    recipe: &Recipe,
    case: &U,
    trainer: &CaseTrainer<U, N>,
    draws: Draws,
) -> Result<(usize, AssessmentOf<U>)> {
    /// Where it ends at the latest.
    const MOST: usize = 4096;
    const ENOUGH: f64 = 0.1;
    let of = |draws: usize| case.task().assess(&Trained { case, recipe, trainer, draws });
    // As many draws as an ensemble has members are all there are.
    let number = match draws {
        Draws::Number(draws) => Some(draws),
        Draws::Auto => recipe.members(),
    };
    if let Some(draws) = number {
        return Ok((draws, of(draws)?));
    }
    let mut draws = recipe.evaluate.draws.clamp(U::Task::LEAST_DRAWS.max(8), MOST);
    loop {
        let assessment = of(draws)?;
        let (ratio, name) = dependence(assessment.scores());
        if ratio <= ENOUGH || draws == MOST {
            say!(
                "{draws} draws: {name} depends on them by {ratio:.2} of its standard error over {}",
                U::EXAMPLES
            );
            return Ok((draws, assessment));
        }
        // An error falls with the root of the number; a little more, as it is only estimated.
        let wanted = 1.2 * draws as f64 * (ratio / ENOUGH).powi(2);
        let next = (wanted.ceil() as usize).clamp(2 * draws, 8 * draws).min(MOST);
        say!(
            "{draws} draws: {name} depends on them by {ratio:.2} of its standard error; {next} next"
        );
        draws = next;
    }
}

/// The largest ratio of the standard error over draws to that over examples, and of which score.
/// Those of predictions before calibration do not count, nor those of paths, of which there are
/// always as many.
fn dependence(scores: &[Score]) -> (f64, &str) {
    let counts = |score: &&Score| {
        let of_paths =
            ["energy_score", "variogram_score"].iter().any(|of| score.name.starts_with(of));
        !score.name.ends_with(RAW) && !of_paths
    };
    let known = |score: &&Score| score.se_draws >= 0.0 && score.se_examples > 0.0;
    let own = scores.iter().filter(counts).filter(known);
    let ratios = own.map(|score| (score.se_draws / score.se_examples, score.name.as_str()));
    ratios.max_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or((0.0, "no score"))
}

/// Of each score its standard error over draws and that over examples, null where it is not known.
fn standard_errors(scores: &[Score]) -> Value {
    tree(scores, |score| json!({ "draws": score.se_draws, "examples": score.se_examples })).into()
}

/// Something of each score by its name, of which a slash goes one level down:
/// `geopotential/500/rmse`.
fn tree(scores: &[Score], of: impl Fn(&Score) -> Value) -> Map<String, Value> {
    let mut root = Value::Object(Map::new());
    for score in scores {
        let place = score.name.split('/').fold(&mut root, |place, name| &mut place[name]);
        *place = of(score);
    }
    match root {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

/// What ran where, for the report.
fn facts<U: UseCase, N: Network<Input = InputOf<U>>>(
    job: &Job,
    trained: &Trained<'_, U, N>,
    digest: &str,
    training: Training,
) -> Vec<(String, String)> {
    let Trained { case, recipe, trainer, .. } = *trained;
    let (settings, time) = (trainer.settings(), trainer.time());
    let strategy = settings.mesh.strategy();
    let mut facts = vec![
        ("Recipe", recipe.name.clone()),
        ("Data", case.source(recipe)),
        ("Mesh", format!("{} (samples × data, {strategy}), {}", settings.mesh, job.kind())),
        ("Threads per rank", settings.threads_per_rank().to_string()),
        ("Device", format!("{:?}", trainer.posterior().parameters().device())),
        (
            "Draws and batch",
            format!("{} draws, {} {}", settings.samples, settings.batch, U::EXAMPLES),
        ),
        ("Reduction", settings.reduce.to_string()),
        ("Seed", settings.seed.to_string()),
        ("Steps", trainer.step().to_string()),
        ("Digest", format!("`{digest}`")),
    ];
    if let Some(seconds) = training.seconds.filter(|_| training.steps > 0) {
        let draws = (settings.samples * settings.batch) as f64;
        let rate = format_number(training.steps as f64 * draws / seconds, 0);
        facts.push(("Training rate", format!("{rate} example-draws a second")));
        let waiting = format!("{:.1} % of the time of the steps", 100.0 * time.waiting());
        facts.push(("Waiting for data", waiting));
        facts.extend(communication(&time, training.steps).map(|text| ("Communication", text)));
    }
    facts.into_iter().map(|(label, text)| (label.to_owned(), text)).collect()
}

/// For the JSON object: fields that every training command has.
fn outcome<U: UseCase, N: Network<Input = InputOf<U>>>(
    folder: &RunFolder,
    trainer: &CaseTrainer<U, N>,
    digest: &str,
) -> Value {
    json!({
        "run": say::path(folder.path()),
        "digest": digest,
        "steps": trainer.step(),
        "mesh": trainer.settings().mesh.to_string(),
        "seed": trainer.settings().seed,
        "peak_rss_bytes": bayesmesh::process_memory::peak_bytes(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_told_with_what_was_waited_for() {
        let training = Training { seconds: Some(9.0), steps: 4 };
        let alone = Time { seconds: 8.0, waited: 0.04, ..Time::default() };
        let text = training.each_step(&alone);
        assert_eq!(text, ": 2.00 s a step, of which 0.5 % waiting for data");
        let time = Time { seconds: 0.02, communication: 0.01, exposed: 0.002, ..alone };
        let text = training.each_step(&Time { waited: 0.0, ..time });
        let expected =
            ": 5.00 ms a step, of which 0.0 % waiting for data and 10.0 % for other ranks";
        assert_eq!(text, expected);
        assert_eq!(Training { steps: 0, ..training }.each_step(&time), "");
    }

    #[test]
    fn communication_is_told_for_a_step_where_there_was_any() {
        let time = Time { seconds: 4.0, communication: 0.2, exposed: 0.01, ..Time::default() };
        let text = communication(&time, 10).unwrap();
        let expected = "20.00 ms a step, of which 1.00 ms (0.2 % of the step) were not hidden";
        assert!(text.starts_with(expected), "{text}");
        assert_eq!(communication(&Time { seconds: 4.0, ..Time::default() }, 10), None);
    }
}
