//! A residual convolutional network for images.

use bayesmesh::{Draw, Network};
use bayesmesh_kernels::ops::{self, Activation, Epilogue, Window};
use bayesmesh_schema::Keys;
use burn::module::{Module, Param};
use burn::nn::{GroupNorm, GroupNormConfig, Linear, LinearConfig};
use burn::tensor::{Device, Tensor};
use serde::Deserialize;

/// Burn's default and PyTorch's.
const EPSILON: f32 = 1e-5;

/// A residual convolutional network, for hundreds or thousands of images: it knows that a thing is
/// the same thing elsewhere on an image, which a transformer has to learn.
///
/// Sizes of a [`ResNet`].
#[derive(Clone, Debug, PartialEq, Keys, Deserialize)]
pub struct ResNetConfig {
    /// Height and width of the images.
    #[serde(skip)]
    pub image: usize,
    /// Numbers of a pixel.
    #[serde(skip)]
    pub channels: usize,
    /// Classes that are told apart.
    #[serde(skip)]
    pub classes: usize,
    /// Channels of the first stage; every other has twice those of the one before.
    #[key(default = 32, at_least = 1, also("channels", "filters", "hidden"))]
    pub width: usize,
    /// Residual blocks of each stage. Every stage but the first halves height and width.
    #[key(default = [2, 2, 2], at_least = 1, items = 1, also("depth", "layers", "depths"))]
    pub blocks: Vec<usize>,
    /// How many pixels apart the squares are that the first convolution looks at: 1 for small
    /// images, 2 or 4 for large ones.
    #[key(default = 2, at_least = 1, at_most = 8, also("stem", "patch"))]
    pub stride: usize,
    /// Groups of channels that are normalised together, over all pixels of an image. They divide
    /// `width`.
    #[key(default = 8, at_least = 1, also("norm_groups"))]
    pub groups: usize,
    /// The probability that a number is dropped before the second convolution of a block. The kept
    /// ones are scaled by 1/(1 − p).
    #[key(default = 0.0, at_least = 0, below = 1, also("dropout_rate", "p"))]
    pub dropout: f64,
}

/// A convolution by its sizes.
#[derive(Clone, Copy)]
struct Sizes {
    inputs: usize,
    outputs: usize,
    window: Window,
}

impl Sizes {
    /// The numbers of a patch.
    fn patch(self) -> usize {
        self.inputs.saturating_mul(self.window.side * self.window.side)
    }

    fn weights(self) -> usize {
        self.patch().saturating_add(1).saturating_mul(self.outputs)
    }
}

/// A block by its sizes: two convolutions, and one for the short way where the shape changes.
#[derive(Clone, Copy)]
struct BlockSizes {
    first: Sizes,
    second: Sizes,
    short: Option<Sizes>,
}

impl ResNetConfig {
    /// A small network that is trained in seconds.
    pub fn tiny() -> Self {
        Self {
            image: 16,
            channels: 3,
            classes: 4,
            width: 8,
            blocks: vec![1, 1],
            stride: 1,
            groups: 4,
            dropout: 0.0,
        }
    }

    fn stem(&self) -> Sizes {
        let side = (2 * self.stride - 1).max(3);
        let window = Window::image([self.image; 2], side, self.stride);
        Sizes { inputs: self.channels, outputs: self.width, window }
    }

    fn block_sizes(&self) -> Vec<BlockSizes> {
        let (mut grid, mut inputs) = (self.stem().window.output(), self.width);
        let mut all = Vec::new();
        for (stage, &blocks) in self.blocks.iter().enumerate() {
            let outputs = self.width.saturating_mul(1usize.checked_shl(stage as u32).unwrap_or(0));
            for block in 0..blocks {
                let stride = if stage > 0 && block == 0 { 2 } else { 1 };
                let sizes = |inputs, side, stride, grid| Sizes {
                    inputs,
                    outputs,
                    window: Window::image(grid, side, stride),
                };
                let first = sizes(inputs, 3, stride, grid);
                let short = (stride > 1).then(|| sizes(inputs, 1, stride, grid));
                grid = first.window.output();
                all.push(BlockSizes { first, second: sizes(outputs, 3, 1, grid), short });
                inputs = outputs;
            }
        }
        all
    }

    /// Channels before the head.
    fn features(&self) -> usize {
        self.block_sizes().last().map_or(self.width, |block| block.second.outputs)
    }

    /// Refuses sizes that do not go together, in a sentence that says what to change.
    pub fn check(&self) -> Result<(), String> {
        const MOST_BLOCKS: usize = 10_000;
        let Self { width, groups, stride, .. } = *self;
        let blocks = self.blocks.iter().fold(0, |sum: usize, &blocks| sum.saturating_add(blocks));
        Err(match () {
            () if groups == 0 || !width.is_multiple_of(groups) => {
                format!(
                    "{groups} groups do not divide {width} channels; change `width` or `groups`"
                )
            }
            () if stride == 0 || width == 0 || self.blocks.is_empty() => {
                "`width`, `stride` and the number of stages are at least 1".to_owned()
            }
            () if blocks > MOST_BLOCKS || self.blocks.len() > 16 => {
                "at most 16 stages with 10000 blocks together can be trained".to_owned()
            }
            () if !(0.0..1.0).contains(&self.dropout) => format!(
                "a dropout probability of {} is not possible; choose one from 0 to below 1",
                self.dropout
            ),
            () => return Ok(()),
        })
    }

    /// How many weights the network has; the largest number where it has more.
    pub fn weights(&self) -> u64 {
        let add = |sum: usize, n: usize| sum.saturating_add(n);
        let blocks = self.block_sizes().into_iter().map(|BlockSizes { first, second, short }| {
            let norms = first.inputs.saturating_add(second.inputs).saturating_mul(2);
            let short = short.map_or(0, Sizes::weights);
            [first.weights(), second.weights(), short, norms].into_iter().fold(0, add)
        });
        let features = self.features();
        let head = features.saturating_add(1).saturating_mul(self.classes);
        let ends = [self.stem().weights(), features.saturating_mul(2), head];
        blocks.chain(ends).fold(0, add) as u64
    }

    /// How many numbers it holds for one example and one draw between its forward and its backward
    /// pass: of a block its input, the normalised one and the sum that comes out, the first
    /// convolution and what is normalised of it, the second convolution.
    pub fn activations(&self) -> u64 {
        let size = |grid: [usize; 2], width: usize| {
            grid[0].saturating_mul(grid[1]).saturating_mul(width) as u64
        };
        let blocks = self.block_sizes().into_iter().map(|BlockSizes { first, second, .. }| {
            let before = size(first.window.grid, first.inputs).saturating_mul(2);
            let within = size(second.window.grid, second.inputs).saturating_mul(4);
            before.saturating_add(within)
        });
        let image = size([self.image; 2], self.channels).saturating_mul(2);
        blocks.fold(image, u64::saturating_add)
    }

    /// The network, with Burn's initial weights.
    ///
    /// # Panics
    ///
    /// If [`check`](Self::check) refuses the sizes.
    pub fn init(&self, device: &Device) -> ResNet {
        if let Err(reason) = self.check() {
            panic!("{reason}");
        }
        let conv = |sizes: Sizes| LinearConfig::new(sizes.patch(), sizes.outputs).init(device);
        let norm = |width| GroupNormConfig::new(self.groups, width).init(device);
        let block = |sizes: BlockSizes| Block {
            norm1: norm(sizes.first.inputs),
            conv1: conv(sizes.first),
            norm2: norm(sizes.second.inputs),
            conv2: conv(sizes.second),
            short: sizes.short.map(conv),
        };
        let features = self.features();
        ResNet {
            stem: conv(self.stem()),
            blocks: self.block_sizes().into_iter().map(block).collect(),
            norm: norm(features),
            head: LinearConfig::new(features, self.classes).init(device),
            config: self.clone(),
        }
    }
}

/// A residual network whose activations come before its convolutions (He et al., 2016): a
/// convolution; blocks that add `conv(relu(norm(conv(relu(norm x)))))`; normalised, the mean over
/// all places, and a linear layer to the classes.
///
/// Groups of channels are normalised (Wu and He, 2018) and not batches: what comes out of an image
/// depends on no other, so that it is the same however a batch is divided, and draws do not need
/// running statistics of their own.
#[derive(Module, Debug)]
pub struct ResNet {
    stem: Linear,
    blocks: Vec<Block>,
    norm: GroupNorm,
    head: Linear,
    #[module(skip)]
    config: ResNetConfig,
}

impl ResNet {
    /// Rows and columns of the squares of a convolution, by the name of its weight.
    pub(crate) fn side(&self, name: &str) -> usize {
        match name {
            "stem.weight" => self.config.stem().window.side,
            short if short.ends_with("short.weight") => 1,
            _ => 3,
        }
    }
}

/// `x ← short + conv2(relu(norm2(conv1(h))))` with `h = relu(norm1 x)`; the short way is x itself,
/// or a convolution of single pixels of h where the shape changes. The weights of a convolution are
/// `[side²·inputs, outputs]`.
#[derive(Module, Debug)]
struct Block {
    norm1: GroupNorm,
    conv1: Linear,
    norm2: GroupNorm,
    conv2: Linear,
    short: Option<Linear>,
}

impl Network for ResNet {
    type Input = Tensor<4>;

    /// # Shapes
    ///
    /// - input: `[rows, channels, image, image]`
    /// - output: `[rows, classes]`
    fn forward(&self, images: Tensor<4>, draw: &Draw) -> Tensor<2> {
        let pixels = ops::patches(images, 1);
        let mut x = conv(&self.stem, pixels, self.config.stem());
        for (block, sizes) in self.blocks.iter().zip(self.config.block_sizes()) {
            let h = norm(&block.norm1, x.clone());
            let short = match (&block.short, sizes.short) {
                (Some(layer), Some(sizes)) => conv(layer, h.clone(), sizes),
                _ => x,
            };
            let h = norm(&block.norm2, conv(&block.conv1, h, sizes.first));
            let h = draw.dropout(h, self.config.dropout);
            x = short + conv(&block.conv2, h, sizes.second);
        }
        let features: Tensor<2> = norm(&self.norm, x).mean_dim(1).squeeze_dim(1);
        let bias = self.head.bias.as_ref().map(Param::val);
        let epilogue = Epilogue { activation: Activation::Identity, ..Epilogue::default() };
        ops::linear(features, self.head.weight.val(), bias, epilogue)
    }
}

/// Normalised and rectified.
fn norm(layer: &GroupNorm, x: Tensor<3>) -> Tensor<3> {
    let gamma = layer.gamma.as_ref().expect("made with a scale").val();
    let beta = layer.beta.as_ref().expect("made with a shift").val();
    ops::group_norm(x, gamma, beta, layer.num_groups, EPSILON, true)
}

fn conv(layer: &Linear, x: Tensor<3>, sizes: Sizes) -> Tensor<3> {
    let bias = layer.bias.as_ref().expect("made with a bias").val();
    ops::conv(x, layer.weight.val(), bias, sizes.window)
}

#[cfg(test)]
mod tests {
    use bayesmesh::{MeanField, Posterior as _, Prior};

    use super::*;

    /// The count agrees with the network that is made, and absurd sizes are very many.
    #[test]
    fn weights_are_counted_before_they_are_made() {
        let large =
            ResNetConfig { image: 33, stride: 4, blocks: vec![1, 2, 1], ..ResNetConfig::tiny() };
        for config in [ResNetConfig::tiny(), large] {
            let network = config.init(&Device::default());
            assert_eq!(config.weights(), network.num_params() as u64);
        }
        let absurd = ResNetConfig { width: usize::MAX / 2, image: 1 << 40, ..ResNetConfig::tiny() };
        assert_eq!((absurd.weights(), absurd.activations()), (u64::MAX, u64::MAX));
    }

    #[test]
    fn normalisations_are_points_and_convolutions_are_not() {
        let network = ResNetConfig::tiny().init(&Device::default());
        let posterior = MeanField::new(network, Prior::normal(0.0, 1.0)).unwrap();
        for slot in posterior.parameters().slots() {
            assert_eq!(slot.family.is_certain(), slot.name.contains("norm"), "{}", slot.name);
        }
    }

    #[test]
    fn sizes_that_do_not_go_together_are_refused() {
        let refused = |config: ResNetConfig, words: &str| {
            let message = config.check().unwrap_err();
            assert!(message.contains(words), "{message}");
        };
        refused(ResNetConfig { groups: 3, ..ResNetConfig::tiny() }, "3 groups do not divide 8");
        refused(ResNetConfig { dropout: 1.0, ..ResNetConfig::tiny() }, "dropout");
        refused(ResNetConfig { blocks: vec![1; 17], ..ResNetConfig::tiny() }, "16 stages");
    }
}
