//! What the variants of a comparison came to.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::VariantRun;
use super::plan::Plan;
use crate::say;

/// Scores on test data over seeds, variant by variant.
pub struct Summary {
    /// Names of the variants, in the order of the plan.
    names: Vec<String>,
    /// For each variant, the scores of its seeds by name.
    scores: Vec<BTreeMap<String, Vec<f64>>>,
    /// Whether the mean over the runs is what counts, as it is over divisions of the data: then its
    /// standard error is shown, and otherwise the deviation of single runs.
    of_means: bool,
}

/// Mean and deviation of some numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    pub mean: f64,
    /// Unbiased; NaN for a single number.
    pub std: f64,
    pub count: usize,
}

impl Spread {
    pub fn of(values: &[f64]) -> Self {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let std = if values.len() < 2 { f64::NAN } else { (squares / (n - 1.0)).sqrt() };
        Self { mean, std, count: values.len() }
    }

    /// The standard error of the mean.
    pub fn error(&self) -> f64 {
        self.std / (self.count as f64).sqrt()
    }

    /// "12.3 ± 0.4", with digits that suit the deviation.
    pub fn shown(&self) -> String {
        let size = if self.std > 0.0 { self.std } else { self.mean.abs().max(1e-12) / 100.0 };
        let decimals = (1.0 - size.log10().floor()).clamp(0.0, 6.0) as usize;
        match self.std.is_finite() {
            true => format!("{:.decimals$} ± {:.decimals$}", self.mean, self.std),
            false => format!("{:.decimals$}", self.mean),
        }
    }
}

/// The numbers of a tree of scores with their names, of which a slash goes one level down.
fn leaves(name: &str, tree: &Value) -> Vec<(String, f64)> {
    match tree {
        Value::Object(map) => {
            let within = |inner: &String| match name {
                "" => inner.clone(),
                _ => format!("{name}/{inner}"),
            };
            map.iter().flat_map(|(inner, tree)| leaves(&within(inner), tree)).collect()
        }
        number => vec![(name.to_owned(), number.as_f64().unwrap_or(f64::NAN))],
    }
}

impl Summary {
    /// Of the runs of each variant.
    pub fn new(plan: &Plan, finished: &[Vec<VariantRun>]) -> Self {
        let scores = finished.iter().map(|runs| {
            let mut scores: BTreeMap<String, Vec<f64>> = BTreeMap::new();
            for run in runs {
                for (name, value) in leaves("", &run.result["test"]) {
                    scores.entry(name).or_default().push(value);
                }
            }
            scores
        });
        Self {
            names: plan.variants.iter().map(|variant| variant.name.clone()).collect(),
            scores: scores.collect(),
            of_means: !plan.splits().is_empty(),
        }
    }

    /// What follows the `±`, in words.
    pub fn of(&self) -> &'static str {
        if self.of_means { "standard error" } else { "standard deviation" }
    }

    /// A spread with what is shown of it.
    pub fn shown(&self, spread: Spread) -> String {
        match self.of_means {
            true => Spread { std: spread.error(), ..spread }.shown(),
            false => spread.shown(),
        }
    }

    /// The names of all scores.
    pub fn score_names(&self) -> Vec<&str> {
        self.scores.first().into_iter().flat_map(BTreeMap::keys).map(String::as_str).collect()
    }

    /// A score of a variant over its seeds.
    pub fn spread(&self, variant: usize, score: &str) -> Option<Spread> {
        self.scores[variant].get(score).map(|values| Spread::of(values))
    }

    /// How much higher a score of a variant is than that of the first, seed by seed.
    pub fn difference(&self, variant: usize, score: &str) -> Option<Spread> {
        let [first, own] = [0, variant].map(|index| self.scores[index].get(score));
        let pairs = first?.iter().zip(own?);
        Some(Spread::of(&pairs.map(|(first, own)| own - first).collect::<Vec<_>>()))
    }

    /// One row a variant and score.
    pub fn csv(&self) -> String {
        let mut text =
            "variant,score,mean,std,standard_error,runs,difference_to_first,its_std\n".to_owned();
        for (variant, name) in self.names.iter().enumerate() {
            for score in self.score_names() {
                let (Some(own), Some(difference)) =
                    (self.spread(variant, score), self.difference(variant, score))
                else {
                    continue;
                };
                // Values may have commas; quotes double.
                let name = name.replace('"', "\"\"");
                text += &format!(
                    "\"{name}\",{score},{},{},{},{},{},{}\n",
                    own.mean,
                    own.std,
                    own.error(),
                    own.count,
                    difference.mean,
                    difference.std
                );
            }
        }
        text
    }

    /// For each variant its name and scores, with the value of each seed.
    pub fn json(&self) -> Value {
        let variant = |(index, name): (usize, &String)| {
            let scores: Map<String, Value> = self.scores[index]
                .iter()
                .map(|(score, values)| {
                    let spread = Spread::of(values);
                    let Spread { mean, std, .. } = spread;
                    let error = spread.error();
                    let numbers = json!({
                        "mean": mean, "std": std, "standard_error": error, "values": values,
                    });
                    (score.clone(), numbers)
                })
                .collect();
            json!({ "variant": name, "test": scores })
        };
        self.names.iter().enumerate().map(variant).collect()
    }

    /// The main scores for a terminal.
    pub fn table(&self, main: &[&str]) -> String {
        let known: Vec<&str> =
            main.iter().copied().filter(|score| self.score_names().contains(score)).collect();
        let rows: Vec<Vec<String>> = self
            .names
            .iter()
            .enumerate()
            .map(|(variant, name)| {
                let cells = known.iter().map(|score| {
                    let spread = self.spread(variant, score);
                    spread.map_or_else(String::new, |spread| self.shown(spread))
                });
                std::iter::once(name.clone()).chain(cells).collect()
            })
            .collect();
        let header: Vec<&str> = std::iter::once("variant").chain(known.iter().copied()).collect();
        say::table(&header, &rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_has_the_digits_of_its_deviation() {
        let spread = Spread::of(&[0.42, 0.44, 0.46]);
        assert!((spread.mean - 0.44).abs() < 1e-12 && (spread.std - 0.02).abs() < 1e-12);
        assert_eq!(spread.shown(), "0.440 ± 0.020");
        assert_eq!(Spread::of(&[1274.0, 1201.0]).shown(), "1238 ± 52");
        assert_eq!(Spread::of(&[0.5]).shown(), "0.5000");
        assert_eq!(Spread::of(&[2.0, 2.0]).shown(), "2.000 ± 0.000");
    }
}
