//! A convolutional network of burn-nn, which knows nothing of us, trained as a Bayesian network.

use bayesmesh::loss::{Categorical, Expected};
use bayesmesh::{Draw, Length, MeanField, Mesh, Network, Prior, Settings, TensorDataset, Trainer};
use burn::nn::{BatchNorm, BatchNormConfig, Linear, LinearConfig, conv::*};
use burn::tensor::{Device, Distribution, Tensor, activation::relu};

#[derive(burn::module::Module, Debug)]
struct Cnn {
    conv: Conv2d,
    norm: BatchNorm,
    linear: Linear,
}

impl Network for Cnn {
    type Input = Tensor<4>;
    fn forward(&self, images: Tensor<4>, _draw: &Draw) -> Tensor<2> {
        let features = relu(self.norm.forward(self.conv.forward(images)));
        self.linear.forward(features.flatten(1, 3))
    }
}

fn main() -> bayesmesh::Result<()> {
    let device = Device::default();
    let images = Tensor::<4>::random([400, 1, 8, 8], Distribution::Normal(0.0, 1.0), &device);
    let bright = images.clone().flatten::<2>(1, 3).mean_dim(1).greater_elem(0.0);
    let data = TensorDataset::new(images, bright.int().squeeze_dim(1))?;
    let conv = Conv2dConfig::new([1, 4], [3, 3]).init(&device);
    let norm = BatchNormConfig::new(4).init(&device);
    let linear = LinearConfig::new(144, 2).init(&device);
    let posterior = MeanField::new(Cnn { conv, norm, linear }, Prior::normal(0.0, 1.0))?;
    let settings = Settings { samples: 4, mesh: Mesh::samples(2)?, ..Settings::default() };
    let mut trainer = Trainer::new(posterior, Expected(Categorical), settings);
    trainer.fit(&data, None, Length::Epochs(20))?;
    for score in trainer.evaluate(&data, 16)? {
        println!("{}: {:.3}", score.name, score.value);
    }
    Ok(())
}
