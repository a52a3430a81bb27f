//! A validation score by its name, and what makes it better.

use super::EpochReport;
use crate::error::{Error, Result};

/// The score that a callback looks at.
#[derive(Clone, Debug)]
pub(super) struct Watched {
    name: String,
    higher_is_better: bool,
    /// By how much it has to be better to count.
    least: f64,
}

impl Watched {
    /// A score of which less is better.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), higher_is_better: false, least: 0.0 }
    }

    pub fn higher_is_better(mut self) -> Self {
        self.higher_is_better = true;
        self
    }

    pub fn at_least(mut self, least: f64) -> Self {
        self.least = least;
        self
    }

    /// Its value after an epoch; an error where there is no such score.
    pub fn of(&self, report: &EpochReport) -> Result<f64> {
        let scores = &report.validation;
        if let Some(score) = scores.iter().find(|score| score.name == self.name) {
            return Ok(score.value);
        }
        let reason = match scores.is_empty() {
            true => "there are none, because `fit` was given no validation data".to_owned(),
            false => {
                let names: Vec<&str> = scores.iter().map(|score| score.name.as_str()).collect();
                format!("they are {}", names.join(", "))
            }
        };
        let name = &self.name;
        Err(Error::Setting(format!("`{name}` is not one of the validation scores: {reason}")))
    }

    /// Whether a value is better than the best one so far. What is not a number never is.
    pub fn improves(&self, value: f64, best: Option<f64>) -> bool {
        let gain = match (best, self.higher_is_better) {
            (None, _) => return !value.is_nan(),
            (Some(best), true) => value - best,
            (Some(best), false) => best - value,
        };
        gain > 0.0 && gain >= self.least
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Score;
    use crate::trainer::Time;

    fn report(validation: Vec<Score>) -> EpochReport {
        EpochReport { epoch: 0, step: 1, loss: 0.0, validation, time: Time::default() }
    }

    #[test]
    fn a_score_that_does_not_exist_is_an_error_that_names_those_that_do() {
        let report = report(vec![Score::new("rmse", 2.0), Score::new("nll", 1.5)]);
        assert_eq!(Watched::new("nll").of(&report).unwrap(), 1.5);
        let error = Watched::new("nnl").of(&report).unwrap_err();
        let text = "`nnl` is not one of the validation scores: they are rmse, nll";
        assert_eq!(error.to_string(), text);
    }

    #[test]
    fn without_validation_data_there_is_no_score() {
        let error = Watched::new("nll").of(&report(Vec::new())).unwrap_err();
        assert!(error.to_string().contains("`fit` was given no validation data"), "{error}");
    }

    #[test]
    fn what_counts_as_better() {
        let nll = Watched::new("nll");
        assert!(nll.improves(1.0, None) && nll.improves(0.9, Some(1.0)));
        assert!(!nll.improves(1.0, Some(1.0)) && !nll.improves(1.1, Some(1.0)));
        assert!(!nll.improves(f64::NAN, None) && !nll.improves(f64::NAN, Some(1.0)));
        assert!(nll.improves(1.0, Some(f64::INFINITY)));

        let nll = nll.at_least(0.2);
        assert!(!nll.improves(0.9, Some(1.0)) && nll.improves(0.75, Some(1.0)));

        let accuracy = Watched::new("accuracy").higher_is_better();
        assert!(accuracy.improves(0.9, Some(0.8)) && !accuracy.improves(0.7, Some(0.8)));
    }
}
