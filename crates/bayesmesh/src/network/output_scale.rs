//! A scale for each output, learned with the network.

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor, TensorData};

/// One trainable factor for each kind of output. A network that predicts the change of what it is
/// given begins with the size of usual changes, instead of one that weights of the usual size make.
///
/// It keeps its start when the weights are [initialised](crate::Posterior::initialised), and a
/// [`MeanField`](crate::MeanField) posterior takes it as a point estimate unless asked otherwise.
#[derive(Module, Debug)]
pub struct OutputScale {
    scale: Param<Tensor<1>>,
}

impl OutputScale {
    /// With these factors at the start.
    pub fn new(start: Vec<f32>, device: &Device) -> Self {
        let count = start.len();
        let start = Tensor::from_data(TensorData::new(start, [count]), device);
        Self { scale: Param::from_tensor(start) }
    }

    /// The factors.
    ///
    /// # Shapes
    ///
    /// - output: `[outputs]`
    pub fn val(&self) -> Tensor<1> {
        self.scale.val()
    }
}
