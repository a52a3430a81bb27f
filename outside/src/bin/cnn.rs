//! A convolutional network with a loss of one's own: the focal loss of the mean probability,
//! `−(1 − p̄)^γ·ln p̄` (Lin et al. 2017), exact on any number of ranks.
#![forbid(unsafe_code)]

use bayesmesh::loss::{Combine, Reading};
use bayesmesh::{Purpose, Stream, prelude::*};
use burn::nn::{Linear, LinearConfig, conv::*};
use burn::tensor::activation::{relu, softmax};
use burn::tensor::{Device, Int, Tensor, TensorData};

#[derive(burn::module::Module, Debug)]
struct Cnn {
    conv: Conv2d,
    linear: Linear,
}

impl Network for Cnn {
    type Input = Tensor<4>;
    fn forward(&self, images: Tensor<4>, draw: &Draw) -> Tensor<2> {
        let features = relu(self.conv.forward(images)).flatten::<2>(1, 3);
        self.linear.forward(draw.dropout(features, 0.2))
    }
}

#[derive(Clone)]
struct Focal(f32);

impl Loss for Focal {
    type Target = Tensor<1, Int>;
    fn combine(&self) -> Combine {
        Combine::Sum
    }
    fn summary(&self, logits: Tensor<2>, labels: &Tensor<1, Int>) -> Tensor<2> {
        softmax(logits, 1).gather(1, labels.clone().unsqueeze_dim(1))
    }
    fn value(&self, sum: Tensor<2>, draws: usize, _labels: &Tensor<1, Int>) -> Tensor<1> {
        let p = sum / draws as f32;
        (-(p.clone().neg() + 1.0).powf_scalar(self.0) * p.log()).squeeze_dim(1)
    }
    fn reading(&self) -> Reading {
        Reading::Logits
    }
}

fn main() -> bayesmesh::Result<()> {
    let (device, mut pixels) = (Device::default(), vec![0.0; 500 * 64]);
    Stream::new(1, Purpose::Synthesis).fill_normal(0, &mut pixels);
    let images = Tensor::<4>::from_data(TensorData::new(pixels, [500, 1, 8, 8]), &device);
    let bright = images.clone().flatten::<2>(1, 3).mean_dim(1).greater_elem(0.0);
    let data = TensorDataset::new(images, bright.int().squeeze_dim(1))?;
    let conv = Conv2dConfig::new([1, 8], [3, 3]).init(&device);
    let network = Cnn { conv, linear: LinearConfig::new(288, 2).init(&device) };
    let settings = Settings { samples: 4, mesh: Mesh::samples(2)?, ..Settings::default() };
    let mut trainer = Trainer::new(McDropout::new(network).initialised(0), Focal(2.0), settings);
    trainer.fit(&data, None, Length::Epochs(30))?;
    let scores = trainer.evaluate(&data, 32)?;
    println!("accuracy {:.3}", scores.score("accuracy")?.value);
    Ok(())
}
