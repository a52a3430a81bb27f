//! The `bayesmesh` program with one use case more: noisy points of a sine curve.
//!
//! This file is all of it. The last line of `main` is the registration.
#![forbid(unsafe_code)]

use std::path::Path;
use std::process::ExitCode;

use bayesmesh::{Purpose, Stream};
use bayesmesh_cli::Usage;
use bayesmesh_cli::prelude::*;
use burn::tensor::{Device, Tensor};
use serde::Deserialize;

/// `[data]`: each variant is a kind, each field a key, and the comments are their documentation.
#[derive(Kinds, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
enum SineSettings {
    /// noisy points of a sine curve
    Sine {
        /// How many points there are.
        #[key(default = 500, at_least = 20, also("points", "size"))]
        count: usize,
        /// The standard deviation of the noise.
        #[key(default = 0.1, at_least = 0)]
        noise: f64,
        /// The seed of the points.
        #[key(default = 1)]
        seed: u64,
    },
}

type Points = TensorDataset<Tensor<2>, Tensor<2>>;

struct Sine {
    parts: [Points; 3],
}

impl UseCase for Sine {
    const NAME: &'static str = "sine";
    const INPUTS: &'static str = "points";
    const EXAMPLE: &'static str = "point";
    const EXAMPLES: &'static str = "points";
    const MAIN_SCORES: &'static [&'static str] = &["rmse", "crps", "coverage_90"];
    type Settings = SineSettings;
    type Task = Regression;
    type Data = Points;
    type Extras = ();

    fn models() -> Vec<ModelEntry> {
        vec![ModelEntry::of::<Self, MlpConfig>()]
    }

    fn shape(_: &SineSettings) -> Shape {
        Shape::new(vec![1], 1)
    }

    fn load(settings: &SineSettings, _: &Recipe) -> Result<Self> {
        let &SineSettings::Sine { count, noise, seed } = settings;
        let stream = Stream::new(seed, Purpose::Synthesis);
        let (mut x, mut epsilon) = (vec![0.0; count], vec![0.0; count]);
        stream.at_tensor(0).fill_uniform(0, &mut x);
        stream.at_tensor(1).fill_normal(0, &mut epsilon);
        x.iter_mut().for_each(|x| *x = 6.0 * *x - 3.0);
        let noisy = |(x, epsilon): (&f32, &f32)| x.sin() + noise as f32 * epsilon;
        let y: Vec<f32> = x.iter().zip(&epsilon).map(noisy).collect();
        let points = TensorDataset::new(column(&x), column(&y))?;
        Ok(Self { parts: points.split([0.6, 0.2, 0.2])? })
    }

    fn task(&self) -> Regression {
        Regression::plain()
    }

    fn train(&self) -> &Points {
        &self.parts[0]
    }

    fn valid(&self) -> Option<&Points> {
        Some(&self.parts[1])
    }

    fn test(&self) -> &Points {
        &self.parts[2]
    }

    fn source(&self, _: &Recipe) -> String {
        "points of a sine curve".to_owned()
    }

    fn extras<N: Network<Input = Tensor<2>> + 'static>(
        &self,
        _: &Trained<'_, Self, N>,
        _: &RegressionAssessment,
    ) -> Result<()> {
        Ok(())
    }

    /// To predict: a text file with one number a line.
    fn read(&self, path: &Path) -> Result<Points> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| Usage(format!("{}: {error}", path.display())))?;
        let x: Vec<f32> = text
            .lines()
            .map(|line| line.trim().parse())
            .collect::<std::result::Result<_, _>>()
            .map_err(|error| Usage(format!("{}: {error}", path.display())))?;
        Ok(TensorDataset::new(column(&x), column(&x))?)
    }
}

fn column(values: &[f32]) -> Tensor<2> {
    Tensor::<1>::from_floats(values, &Device::default()).unsqueeze_dim(1)
}

fn main() -> ExitCode {
    bayesmesh_cli::main(&[BUILTIN, &[entry::<Sine>()]].concat())
}
