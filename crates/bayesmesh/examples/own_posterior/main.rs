//! A posterior that the library does not have, in a file of its own: a mean-field Laplace
//! distribution. Beside it the library's deep ensemble. Both learn a noisy sine on two ranks, and
//! both are less sure where they have seen nothing.

mod laplace;

use bayesmesh::loss::{Expected, Gaussian, Mixture};
use bayesmesh::{
    Draw, Ensemble, Length, Mesh, Network, Posterior, Settings, TensorDataset, Trainer,
};
use burn::nn::{Linear, LinearConfig};
use burn::tensor::{Device, Tensor};
use laplace::MeanFieldLaplace;

#[derive(burn::module::Module, Debug)]
struct Mlp {
    first: Linear,
    second: Linear,
}

impl Network for Mlp {
    type Input = Tensor<2>;
    fn forward(&self, x: Tensor<2>, _draw: &Draw) -> Tensor<2> {
        self.second.forward(self.first.forward(x).tanh())
    }
}

fn show<P, L>(name: &str, posterior: P, loss: L) -> bayesmesh::Result<()>
where
    P: Posterior<Network = Mlp> + Clone,
    L: bayesmesh::Loss<Target = Tensor<2>>,
{
    let device = Device::default();
    let x = Tensor::<1, burn::tensor::Int>::arange(0..200, &device).float() / 50.0 - 2.0;
    let noise = (x.clone() * 12_345.0).sin() * 0.1;
    let data =
        TensorDataset::new(x.clone().unsqueeze_dim(1), ((x * 2.0).sin() + noise).unsqueeze_dim(1))?;
    let mesh = Mesh::samples(2)?;
    let settings = Settings { samples: 4, mesh, schedule: 0.01.into(), ..Settings::default() };
    let mut trainer = Trainer::new(posterior, loss, settings);
    trainer.fit(&data, None, Length::Epochs(200))?;
    let rmse = trainer.evaluate(&data, 4)?.score("rmse")?.value;
    let at = Tensor::<1>::from_floats([0.0, 6.0], &device).unsqueeze_dim(1);
    let spread = trainer.predict(&at, 4)?.epistemic_std();
    println!("{name}: rmse {rmse:.3}; spread {:.3} at 0, {:.3} at 6", spread[0], spread[1]);
    assert!(spread[1] > spread[0], "less sure where nothing was seen");
    Ok(())
}

fn main() -> bayesmesh::Result<()> {
    let device = Device::default();
    let network = || Mlp {
        first: LinearConfig::new(1, 32).init(&device),
        second: LinearConfig::new(32, 1).init(&device),
    };
    let noise = Gaussian::fixed(0.1)?;
    show(
        "mean-field Laplace",
        MeanFieldLaplace::new(network(), 1.0).initialised(0),
        Expected(noise),
    )?;
    show("deep ensemble", Ensemble::new(network()), Expected(noise))?;
    show("deep ensemble, trained jointly", Ensemble::new(network()), Mixture::new(noise))
}
