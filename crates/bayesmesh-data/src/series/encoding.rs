//! Series as networks see them.

use serde::{Deserialize, Serialize};

use super::normaliser::Normaliser;
use super::panel::{Covariate, Panel, Roles, Series};
use super::period::{Cycle, Period};
use super::windows::{Cut, Part, Scaled};
use crate::table::TableError;

/// A text with more kinds is no covariate.
const MOST_KINDS: usize = 50;

/// What was learned of series: how they are read, scaled and cut. A run keeps it, so that it can
/// forecast other files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Encoding {
    /// Which columns are what.
    pub roles: Roles,
    /// Words for nothing.
    pub missing: Vec<String>,
    /// Gaps of up to so many steps are interpolated.
    pub fill: usize,
    /// From one value to the next.
    pub period: Period,
    /// How examples are cut.
    pub cut: Cut,
    /// What networks are told of the calendar.
    pub cycles: Vec<Cycle>,
    /// What goes with the series.
    pub past: Vec<Coding>,
    /// And is known beyond the forecast.
    pub known: Vec<Coding>,
    /// The series with their scales.
    pub series: Vec<Known>,
}

/// A series that was learned from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Known {
    /// Its name.
    pub name: String,
    /// Its scale.
    pub scale: Normaliser,
}

/// How a column that goes with series becomes numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Coding {
    /// Scaled.
    Number(Normaliser),
    /// A one for its text, zeros for the others.
    Kinds(Vec<String>),
}

impl Coding {
    /// How many numbers a cell becomes.
    pub fn width(&self) -> usize {
        match self {
            Self::Number(_) => 1,
            Self::Kinds(kinds) => kinds.len(),
        }
    }

    fn learn(name: &str, columns: &[(&Covariate, &Part)]) -> Result<Self, TableError> {
        let mut kinds: Vec<&str> = Vec::new();
        let mut numbers: Vec<f64> = Vec::new();
        for (covariate, part) in columns {
            match covariate {
                Covariate::Numbers(all) => numbers.extend(&all[part.steps.clone()]),
                Covariate::Texts(all) => {
                    kinds.extend(all[part.steps.clone()].iter().flatten().map(String::as_str));
                    kinds.sort_unstable();
                    kinds.dedup();
                }
            }
        }
        if kinds.len() > MOST_KINDS {
            return Err(TableError::column(
                name,
                format!(
                    "{} texts are too many; what goes with a series has at most {MOST_KINDS} \
                     kinds, or is a number",
                    kinds.len()
                ),
            ));
        }
        if !kinds.is_empty() {
            return Ok(Self::Kinds(kinds.into_iter().map(str::to_owned).collect()));
        }
        // What never changes says nothing, and does no harm.
        let mean = numbers.iter().copied().find(|x| !x.is_nan()).unwrap_or_default();
        let constant = Normaliser { mean, std: 1.0 };
        Ok(Self::Number(Normaliser::fit(numbers.iter().copied()).unwrap_or(constant)))
    }

    /// The numbers of a column at each step, one list for each of them.
    fn encode(&self, name: &str, covariate: &Covariate) -> Result<Vec<Vec<f32>>, TableError> {
        match (self, covariate) {
            (Self::Number(scale), Covariate::Numbers(numbers)) => {
                let scaled = |number: &f64| (!number.is_nan()).then(|| scale.apply(*number));
                Ok(vec![filled(numbers.iter().map(scaled))])
            }
            (Self::Number(_), Covariate::Texts(texts)) => {
                let text = texts.iter().flatten().find(|text| text.parse::<f64>().is_err());
                Err(TableError::column(
                    name,
                    format!(
                        "it was learned as numbers, and this file has `{}`",
                        bayesmesh_files::shown(text.map_or("", String::as_str))
                    ),
                ))
            }
            (Self::Kinds(kinds), Covariate::Texts(texts)) => {
                let one = |kind: &String| -> Vec<f32> {
                    texts
                        .iter()
                        .map(|text| f32::from(u8::from(text.as_ref() == Some(kind))))
                        .collect()
                };
                Ok(kinds.iter().map(one).collect())
            }
            (Self::Kinds(kinds), Covariate::Numbers(numbers)) => {
                let text = |number: &f64| (!number.is_nan()).then(|| number.to_string());
                let texts = Covariate::Texts(numbers.iter().map(text).collect());
                Self::Kinds(kinds.clone()).encode(name, &texts)
            }
        }
    }
}

/// Numbers with the last one before each gap, and the first one before that.
fn filled(numbers: impl Iterator<Item = Option<f32>> + Clone) -> Vec<f32> {
    let mut last = numbers.clone().flatten().next().unwrap_or_default();
    let next = |number: Option<f32>| {
        last = number.unwrap_or(last);
        last
    };
    numbers.map(next).collect()
}

impl Encoding {
    /// What is known beforehand, with everything else still to be learned.
    pub fn new(period: Period, cut: Cut) -> Self {
        Self {
            roles: Roles::default(),
            missing: Vec::new(),
            fill: 0,
            period,
            cut,
            cycles: Vec::new(),
            past: Vec::new(),
            known: Vec::new(),
            series: Vec::new(),
        }
    }

    /// Learns scales and kinds from the parts for training: a scale for each series, or one for
    /// all.
    pub fn learn(&mut self, panel: &Panel, parts: &[Part], each: bool) -> Result<(), TableError> {
        let values = |part: &Part| panel.series[part.series].values[part.steps.clone()].to_vec();
        let all: Vec<f64> = parts.iter().flat_map(values).collect();
        if let Some(odd) = all.iter().find(|value| value.is_infinite()) {
            return Err(TableError::Split(format!(
                "the training part has {odd}; repair it, or name it in `data.missing`"
            )));
        }
        let Some(common) = Normaliser::fit(all.iter().copied()) else {
            let found = all.iter().find(|value| !value.is_nan());
            return Err(TableError::Split(match found {
                Some(value) => format!(
                    "the training part is constant ({value}); check that the right column was read"
                ),
                None => "the training part has no values; change `data.split`".to_owned(),
            }));
        };
        self.series = parts
            .iter()
            .map(|part| {
                let series = &panel.series[part.series];
                let own = if each { Normaliser::fit(values(part).into_iter()) } else { None };
                Known { name: series.name.clone(), scale: own.unwrap_or(common) }
            })
            .collect();
        let coding = |names: &[String], of: fn(&Series) -> &Vec<Covariate>| {
            let column = |(index, name): (usize, &String)| {
                let columns: Vec<(&Covariate, &Part)> = parts
                    .iter()
                    .map(|part| (&of(&panel.series[part.series])[index], part))
                    .collect();
                Coding::learn(name, &columns)
            };
            names.iter().enumerate().map(column).collect::<Result<Vec<_>, _>>()
        };
        self.past = coding(&self.roles.past, |series| &series.past)?;
        self.known = coding(&self.roles.known, |series| &series.known)?;
        Ok(())
    }

    /// Columns of a window's past, its values included, and of its future.
    pub fn channels(&self) -> [usize; 2] {
        let width = |codings: &[Coding]| codings.iter().map(Coding::width).sum::<usize>();
        let known = width(&self.known);
        [1 + width(&self.past) + known, known]
    }

    /// The number of a series among those that were learned from, and its scale; of one that is
    /// new, no number and its own scale.
    pub fn of(&self, series: &Series) -> (Option<usize>, Normaliser) {
        let known = self.series.iter().position(|known| known.name == series.name);
        match (known, self.series.as_slice()) {
            (Some(number), all) => (Some(number), all[number].scale),
            // A single series has no name.
            (None, [only]) => (Some(0), only.scale),
            (None, all) => {
                let own = Normaliser::fit(series.values.iter().copied());
                (None, own.or(all.first().map(|known| known.scale)).unwrap_or(UNSCALED))
            }
        }
    }

    /// The series as networks see them.
    pub fn encode(&self, panel: &Panel) -> Result<Vec<Scaled>, TableError> {
        let series = panel.series.iter().enumerate();
        series.map(|(number, series)| self.scaled(panel, number, series)).collect()
    }

    fn scaled(&self, panel: &Panel, number: usize, series: &Series) -> Result<Scaled, TableError> {
        let (known, scale) = self.of(series);
        let columns = |names: &[String], codings: &[Coding], covariates: &[Covariate]| {
            let columns = names.iter().zip(codings).zip(covariates);
            let encoded = columns.map(|((name, coding), own)| coding.encode(name, own));
            Ok(encoded.collect::<Result<Vec<_>, TableError>>()?.concat())
        };
        let calendar = (0..=series.values.len()).flat_map(|step| {
            let time = panel.time(number, step);
            let cycles = self.cycles.iter().filter_map(move |cycle| Some(cycle.encode(time?)));
            cycles.flatten().collect::<Vec<f32>>()
        });
        Ok(Scaled {
            values: series.values.iter().map(|&value| scale.apply(value)).collect(),
            past: columns(&self.roles.past, &self.past, &series.past)?,
            known: columns(&self.roles.known, &self.known, &series.known)?,
            calendar: calendar.collect(),
            code: (self.series.len() > 1).then(|| known.map_or(0.0, |known| (known + 1) as f32)),
            first: series.first,
        })
    }

    /// As text.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("numbers and texts can be written")
    }

    /// From text.
    pub fn from_json(text: &str) -> Result<Self, TableError> {
        serde_json::from_str(text).map_err(|error| {
            TableError::Setting(format!("what the run has noted of its series is damaged: {error}"))
        })
    }
}

const UNSCALED: Normaliser = Normaliser { mean: 0.0, std: 1.0 };

#[cfg(test)]
mod tests {
    use super::*;

    fn panel() -> Panel {
        let series = |name: &str, values: &[f64]| Series {
            name: name.to_owned(),
            first: 0,
            values: values.to_vec(),
            past: vec![Covariate::Numbers(vec![0.0, f64::NAN, 2.0, 4.0])],
            known: vec![Covariate::Texts(
                ["a", "", "b", "c", "a"].map(|t| (!t.is_empty()).then(|| t.to_owned())).to_vec(),
            )],
            times: Vec::new(),
        };
        let series =
            vec![series("x", &[1.0, 3.0, 5.0, 9.0]), series("y", &[10.0, 30.0, 20.0, 0.0])];
        Panel { period: Period::Seconds(86_400), origin: 0, series }
    }

    fn learned() -> Encoding {
        let cut = Cut { inputs: 2, outputs: 1, stride: 1, reach_back: true, relative: false };
        let mut encoding = Encoding::new(Period::Seconds(86_400), cut);
        encoding.roles.past = vec!["warm".to_owned()];
        encoding.roles.known = vec!["day".to_owned()];
        encoding.cycles = vec![Cycle::Week];
        let part = |series| Part { series, steps: 0..3 };
        encoding.learn(&panel(), &[part(0), part(1)], true).unwrap();
        encoding
    }

    #[test]
    fn scales_and_kinds_come_from_the_training_part() {
        let encoding = learned();
        assert_eq!(encoding.series[0].scale.mean, 3.0);
        assert_eq!(encoding.series[1].scale.mean, 20.0);
        // `c` and 4 come later.
        assert_eq!(encoding.known, [Coding::Kinds(vec!["a".to_owned(), "b".to_owned()])]);
        let Coding::Number(warm) = &encoding.past[0] else { panic!() };
        assert_eq!(warm.mean, 1.0);
        assert_eq!(encoding.channels(), [4, 2]);
        let scaled = encoding.encode(&panel()).unwrap();
        assert_eq!(scaled[0].known, [[1., 0., 0., 0., 1.], [0., 0., 1., 0., 0.]]);
        // A gap has what was before it.
        assert_eq!(scaled[0].past, [[-1.0, -1.0, 1.0, 3.0]]);
        assert_eq!((scaled[0].code, scaled[1].code), (Some(1.0), Some(2.0)));
        assert_eq!(scaled[0].calendar.len(), 5 * Cycle::Week.features());
        assert_eq!(Encoding::from_json(&encoding.to_json()).unwrap(), encoding);
    }

    #[test]
    fn a_new_series_has_no_number_and_its_own_scale() {
        let mut other = panel();
        other.series[1].name = "z".to_owned();
        other.series[1].values = vec![100.0, 300.0];
        let scaled = learned().encode(&other).unwrap();
        assert_eq!((scaled[1].code, &scaled[1].values), (Some(0.0), &vec![-1.0, 1.0]));
        other.series[0].past = vec![Covariate::Texts(vec![Some("hot".to_owned())])];
        let message = learned().encode(&other).unwrap_err().to_string();
        assert!(message.contains("`warm`") && message.contains("`hot`"), "{message}");
    }
}
