//! The local mode is the paper's algorithm: every rank takes the loss of its own draws, and
//! gradients are averaged. Written out here by hand on a linear network.

mod common;

use bayesmesh::loss::{Categorical, Mixture};
use bayesmesh::posterior::InitialStd;
use bayesmesh::trainer::{Length, OptimizerConfig, Schedule};
use bayesmesh::{
    Draw, MeanField, Mesh, Network, Posterior, Prior, Purpose, Settings, Stream, Trainer,
};
use burn::module::Module;
use burn::nn::{Linear, LinearConfig};
use burn::tensor::{Device, Int, Tensor, TensorData, activation};
use common::{classification, distance};

#[derive(Module, Debug)]
struct Line {
    linear: Linear,
}

impl Network for Line {
    type Input = Tensor<2>;

    fn forward(&self, input: Tensor<2>, _draw: &Draw) -> Tensor<2> {
        self.linear.forward(input)
    }
}

const SEED: u64 = 3;
const STEPS: usize = 4;
const RATE: f64 = 0.2;
const EXAMPLES: usize = 12;
const SHAPES: [&[usize]; 2] = [&[5, 3], &[3]];

/// `[mean | log std]` of weight and bias after some steps of the paper's algorithm with `ranks`
/// ranks of `samples / ranks` draws, in plain tensor operations.
fn by_hand(start: &[f32], ranks: usize, samples: usize) -> Vec<f32> {
    let device = Device::default().autodiff();
    let data = classification(EXAMPLES);
    let mut values = start.to_vec();
    for step in 0..STEPS {
        let order = Stream::new(SEED, Purpose::Shuffle).at_step(step as u32).permutation(EXAMPLES);
        let (x, y): (Tensor<2>, Tensor<1, Int>) =
            bayesmesh::Dataset::batch(&data, &order, &device).unwrap();
        let mut sum = vec![0.0f64; values.len()];
        for rank in 0..ranks {
            let leaves: Vec<Tensor<1>> = parts(&values)
                .map(|part| {
                    let part = TensorData::new(part.to_vec(), [part.len()]);
                    Tensor::from_data(part, &device).require_grad()
                })
                .collect();
            let [mean_w, log_w, mean_b, log_b] = &leaves[..] else { unreachable!() };
            let mut probabilities = Tensor::<2>::zeros([EXAMPLES, 3], &device);
            // Shares as equal as they can be, the first ones larger.
            let local = samples / ranks + usize::from(rank < samples % ranks);
            let first = rank * (samples / ranks) + rank.min(samples % ranks);
            for draw in first..first + local {
                let noise = |tensor: usize| {
                    let n: usize = SHAPES[tensor].iter().product();
                    let mut noise = vec![0.0; n];
                    Stream::new(SEED, Purpose::Weights)
                        .at_step(step as u32)
                        .at_draw(draw as u32)
                        .at_tensor(tensor as u32)
                        .fill_normal(0, &mut noise);
                    Tensor::<1>::from_data(TensorData::new(noise, [n]), &device)
                };
                let w = mean_w.clone() + log_w.clone().exp() * noise(0);
                let b = mean_b.clone() + log_b.clone().exp() * noise(1);
                let logits = x.clone().matmul(w.reshape([5, 3])) + b.reshape([1, 3]);
                probabilities = probabilities + activation::softmax(logits, 1) / local as f32;
            }
            let chosen = probabilities.gather(1, y.clone().unsqueeze_dim(1));
            let data_loss = chosen.log().mean() * -1.0;
            // ½ Σ (σ² + μ² − 1 − ln σ²) for the prior N(0, 1)
            let kl = |mean: &Tensor<1>, log: &Tensor<1>| {
                let log = log.clone() * 2.0;
                (log.clone().exp() + mean.clone().square() - 1.0 - log).sum() * 0.5
            };
            let loss = data_loss + (kl(mean_w, log_w) + kl(mean_b, log_b)) / EXAMPLES as f32;
            let gradients = loss.backward();
            let flat = leaves.iter().flat_map(|leaf| {
                leaf.grad(&gradients).unwrap().into_data().try_into_vec::<f32>().unwrap()
            });
            // The mean over ranks, weighted by their draws where these are not the same.
            let weight = local as f64 / samples as f64;
            sum.iter_mut().zip(flat).for_each(|(sum, g)| *sum += weight * f64::from(g));
        }
        for (value, sum) in values.iter_mut().zip(&sum) {
            *value -= (RATE * sum) as f32;
        }
    }
    values
}

/// Mean and log std of the weight, then of the bias.
fn parts(values: &[f32]) -> impl Iterator<Item = &[f32]> {
    let (weight, bias) = values.split_at(30);
    weight.chunks(15).chain(bias.chunks(3))
}

fn by_trainer(posterior: &MeanField<Line>, mesh: Mesh, samples: usize, exact: bool) -> Vec<f32> {
    let settings = Settings {
        samples,
        batch: EXAMPLES,
        seed: SEED,
        mesh,
        exact,
        optimizer: OptimizerConfig::sgd(),
        schedule: Schedule::Constant { rate: RATE },
        ..Settings::default()
    };
    let mut trainer = Trainer::new(posterior.clone(), Mixture::new(Categorical), settings);
    trainer.fit(&classification(EXAMPLES), None, Length::Steps(STEPS)).unwrap();
    trainer.posterior().parameters().values().to_vec()
}

#[test]
fn local_mode_is_the_papers_algorithm() {
    let network = Line { linear: LinearConfig::new(5, 3).init(&Device::default()) };
    let posterior = MeanField::new(network, Prior::normal(0.0, 1.0))
        .unwrap()
        .with_initial_std(InitialStd::Constant(0.5))
        .unwrap()
        .initialised(2);
    let start = posterior.parameters().values().to_vec();

    // Rows are independent, so data ranks change nothing.
    for (ranks, data, samples) in
        [(1, 1, 4), (2, 1, 4), (4, 1, 4), (2, 1, 6), (3, 1, 7), (2, 2, 6), (1, 3, 4)]
    {
        let mesh = Mesh::new(ranks, data).unwrap();
        let hand = by_hand(&start, ranks, samples);
        let local = by_trainer(&posterior, mesh, samples, false);
        let error = distance(&hand, &local);
        assert!(error < 1e-5, "{samples} draws on {ranks} ranks: off by {error}");

        // The exact mode is the algorithm on one rank, and on several it is another one.
        let exact = by_trainer(&posterior, mesh, samples, true);
        let one_rank = by_hand(&start, 1, samples);
        assert!(distance(&one_rank, &exact) < 1e-5);
        if ranks > 1 {
            let apart = distance(&hand, &exact);
            assert!(apart > 1e-3, "{samples} draws on {ranks} ranks: only {apart} apart");
        }
    }
}
