//! Sizes of the shifted-window transformer.

use bayesmesh_schema::{Choice, Keys, Lookup};
use serde::Deserialize;

/// Sizes that go together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SwinSize {
    /// The network of the paper: 103,543,449 weights for 76 channels and 69 variables.
    Paper,
    /// One that two cores train in minutes, which predicts the change of what it is given.
    Small,
}

/// A shifted-window transformer on the globe: windows of attention that are periodic in longitude,
/// on a fine and on a coarse grid; `size` chooses all sizes, and each can be set on its own.
///
/// Sizes of a [`Swin`](crate::Swin).
#[derive(Clone, Debug, PartialEq, Keys, Deserialize)]
pub struct SwinConfig {
    /// The channels of the input.
    #[serde(skip)]
    pub channels: usize,
    /// The variables of the output. With `residual` they are also the first channels.
    #[serde(skip)]
    pub variables: usize,
    /// The rows of the grid.
    #[serde(skip)]
    pub latitudes: usize,
    /// The columns of the grid.
    #[serde(skip)]
    pub longitudes: usize,
    /// With `residual`, how large the change of each variable usually is, where its scale begins;
    /// empty is 0.1 for all.
    #[serde(skip)]
    pub changes: Vec<f32>,
    /// The sizes that hold where nothing else is said: those of the paper, or of a network for two
    /// cores.
    #[key(default = "paper", also("preset", "variant"))]
    pub size: SwinSize,
    /// Height and width of a patch in grid points: 2, or 1 for a token at every point.
    #[key(default = 2, at_least = 1, at_most = 2, also("patch_size"))]
    pub patch: usize,
    /// Numbers in a token of the fine grid; a token of the coarse one has twice as many.
    #[key(derived(width_of_size, "540; 64 for `\"small\"`"), at_least = 1)]
    #[key(also("dim", "hidden", "embed_dim", "d_model"))]
    pub width: usize,
    /// Blocks of the first layer, of the middle on the coarse grid, and of the last layer.
    #[key(derived(depths_of_size, "[6, 4, 6]; [2, 2, 2] for `\"small\"`"), at_least = 1)]
    #[key(also("depth", "layers", "blocks"))]
    pub depths: [usize; 3],
    /// Heads of the attention on the fine and on the coarse grid; they divide `width` and twice the
    /// width.
    #[key(derived(heads_of_size, "[12, 24]; [4, 8] for `\"small\"`"), at_least = 1)]
    #[key(also("num_heads"))]
    pub heads: [usize; 2],
    /// Rows and columns of a window in tokens. Its columns divide those of both grids.
    #[key(default = [6, 12], at_least = 1, also("window_size"))]
    pub window: [usize; 2],
    /// Whether the network predicts the change of what it is given, times a trained scale for each
    /// variable, instead of the values themselves.
    #[key(derived(residual_of_size, "false; true for `\"small\"`"), also("skip", "delta"))]
    pub residual: bool,
    /// The probability that a number after the attention, or a hidden unit of a perceptron, is
    /// dropped. The kept ones are scaled by 1/(1 − p).
    #[key(default = 0.0, at_least = 0, below = 1, also("dropout_rate", "p"))]
    pub dropout: f64,
    /// Latent numbers of a draw that change scale and shift of every normalisation, e.g. 32 for a
    /// `functional-noise` posterior; 0 is none.
    #[key(default = 0, also("noise_dim", "latent"))]
    pub noise: usize,
    /// Fields of white noise that the network sees beside its input, others in each draw, e.g. 4
    /// for a `functional-noise` posterior; 0 is none. Every point has its own noise, so that a step
    /// shows the network very many draws of it.
    #[key(default = 0, also("noise_channels"))]
    pub noise_fields: usize,
    /// Whether only the input of each block is kept for the backward pass, which then runs the
    /// blocks again: a tenth of the memory for a third more work.
    #[key(default = false, also("checkpointing", "recompute"))]
    pub checkpoint_blocks: bool,
}

/// What a size sets, in TOML.
fn small(key: Lookup<'_>) -> bool {
    key("size").as_deref() == Some("small")
}

fn width_of_size(key: Lookup<'_>) -> &'static str {
    if small(key) { "64" } else { "540" }
}

fn depths_of_size(key: Lookup<'_>) -> &'static str {
    if small(key) { "[2, 2, 2]" } else { "[6, 4, 6]" }
}

fn heads_of_size(key: Lookup<'_>) -> &'static str {
    if small(key) { "[4, 8]" } else { "[12, 24]" }
}

fn residual_of_size(key: Lookup<'_>) -> &'static str {
    if small(key) { "true" } else { "false" }
}

impl SwinConfig {
    /// The network of the paper for fields of another size: with 76 channels, 69 variables,
    /// 121 latitudes and 240 longitudes it has 103,543,449 weights.
    pub fn paper(channels: usize, variables: usize, latitudes: usize, longitudes: usize) -> Self {
        Self {
            channels,
            variables,
            latitudes,
            longitudes,
            changes: Vec::new(),
            size: SwinSize::Paper,
            patch: 2,
            width: 540,
            depths: [6, 4, 6],
            heads: [12, 24],
            window: [6, 12],
            residual: false,
            dropout: 0.0,
            noise: 0,
            noise_fields: 0,
            checkpoint_blocks: false,
        }
    }

    /// A network for two cores.
    pub fn small(channels: usize, variables: usize, latitudes: usize, longitudes: usize) -> Self {
        Self {
            size: SwinSize::Small,
            width: 64,
            depths: [2, 2, 2],
            heads: [4, 8],
            residual: true,
            ..Self::paper(channels, variables, latitudes, longitudes)
        }
    }

    /// The channels that the network sees.
    pub(crate) fn seen(&self) -> usize {
        self.channels.saturating_add(self.noise_fields)
    }

    /// Rows and columns of tokens of the fine and of the coarse grid.
    pub(crate) fn grids(&self) -> [[usize; 2]; 2] {
        let patch = self.patch.max(1);
        let fine = [self.latitudes.div_ceil(patch), self.longitudes / patch];
        [fine, [fine[0].div_ceil(2), fine[1] / 2]]
    }

    /// Refuses sizes that do not go together, in a sentence that says what to change.
    pub fn check(&self) -> Result<(), String> {
        let Self { patch, width, heads, window, longitudes, variables, channels, .. } = *self;
        let columns = self.grids()[0][1];
        let halves = patch > 0 && longitudes.is_multiple_of(2 * patch) && columns > 0;
        let fits = |n: usize| (columns / 2).is_multiple_of(n);
        Err(match () {
            () if ![1, 2].contains(&patch) => {
                format!("patches of {patch} are not possible; set `patch` to 1 or 2")
            }
            () if self.latitudes == 0 => "a grid without latitudes has no tokens".to_owned(),
            () if !halves => format!(
                "a grid of {longitudes} columns in patches of {patch} has no even number of tokens \
                 around the globe, which the coarse grid needs; {}",
                match patch == 2 && longitudes.is_multiple_of(2) && longitudes > 0 {
                    true => "set `patch` to 1",
                    false => "use a grid whose columns can be divided by 4",
                }
            ),
            () if window[0] == 0 || window[1] == 0 || !fits(window[1]) => {
                let possible: Vec<String> =
                    (1..=columns / 2).filter(|n| fits(*n)).map(|n| n.to_string()).collect();
                format!(
                    "windows of {} columns do not divide the {columns} and {} columns of tokens of \
                     the fine and the coarse grid; set the second number of `window` to one of {}",
                    window[1],
                    columns / 2,
                    possible.join(", ")
                )
            }
            () if heads.contains(&0)
                || !width.is_multiple_of(heads[0])
                || !(2 * width).is_multiple_of(heads[1]) =>
            {
                format!(
                    "{} and {} heads do not divide tokens of {width} and {} numbers; choose other \
                     `heads` or another `width`",
                    heads[0],
                    heads[1],
                    width.saturating_mul(2)
                )
            }
            () if !(0.0..1.0).contains(&self.dropout) => format!(
                "a dropout probability of {} is not possible; choose one from 0 to below 1",
                self.dropout
            ),
            () if self.residual && variables > channels => format!(
                "a change of {variables} variables cannot be added to {channels} channels; set \
                 `residual` to false"
            ),
            () if ![0, variables].contains(&self.changes.len()) => {
                format!("{} usual changes for {variables} variables", self.changes.len())
            }
            () => return Ok(()),
        })
    }

    /// How many weights the network has; the largest number where it has more.
    pub fn weights(&self) -> u64 {
        let Self { variables, patch, width, depths, noise, .. } = *self;
        let channels = self.seen();
        let norm = |width| product(&[2, width, sum(&[1, noise])]);
        let block = |width| {
            sum(&[product(&[12, width, width]), product(&[9, width]), product(&[2, norm(width)])])
        };
        let double = product(&[2, width]);
        let area = product(&[patch, patch]);
        let all = [
            product(&[sum(&[product(&[area, channels]), 1]), width]),
            product(&[sum(&[depths[0], depths[2]]), block(width)]),
            product(&[depths[1], block(double)]),
            sum(&[norm(product(&[4, width])), product(&[8, width, width])]),
            sum(&[product(&[8, width, width]), norm(width), product(&[width, width])]),
            sum(&[product(&[double, variables, area]), variables]),
            if self.residual { variables } else { 0 },
        ];
        sum(&all) as u64
    }

    /// How many numbers it holds for one example and one draw between its forward and its backward
    /// pass; the largest number where it is more.
    ///
    /// A block of width c holds 16c numbers for each token: its input, query, key and value, the
    /// attention, what was projected from it, the sum after it, the slopes and the values of 4c
    /// hidden units, and what comes from these; and a number for each head and two for each
    /// normalisation. With `checkpoint_blocks` it holds its input only, and one block at a time all
    /// of it.
    pub fn activations(&self) -> u64 {
        let Self { variables, patch, width, depths, heads, .. } = *self;
        let channels = self.seen();
        let [fine, coarse] = self.grids().map(|[rows, columns]| product(&[rows, columns]));
        let double = product(&[2, width]);
        let whole =
            |tokens, width, heads| product(&[tokens, sum(&[product(&[16, width]), heads, 4])]);
        let blocks = [(fine, width, heads[0]), (coarse, double, heads[1])];
        let [on_fine, on_coarse] =
            blocks.map(|(tokens, width, heads)| match self.checkpoint_blocks {
                true => product(&[tokens, width]),
                false => whole(tokens, width, heads),
            });
        let again = match self.checkpoint_blocks {
            true => blocks.map(|(tokens, width, heads)| whole(tokens, width, heads)),
            false => [0, 0],
        };
        let outputs = product(&[variables, self.latitudes, self.longitudes]);
        let all = [
            product(&[fine, patch, patch, channels]),
            product(&[sum(&[depths[0], depths[2]]), on_fine]),
            product(&[depths[1], on_coarse]),
            again[0].max(again[1]),
            // Down: the merged tokens before and after their normalisation.
            product(&[coarse, sum(&[product(&[8, width]), 2])]),
            // Up: the tokens of the middle; the divided ones before and after theirs.
            product(&[coarse, double]),
            product(&[fine, sum(&[double, 2])]),
            // Both layers side by side.
            product(&[fine, double]),
            product(&[if self.residual { 2 } else { 1 }, outputs]),
        ];
        sum(&all) as u64
    }
}

/// The product of sizes; the largest number where it is more.
fn product(sizes: &[usize]) -> usize {
    sizes.iter().fold(1, |product: usize, &size| product.saturating_mul(size))
}

/// The sum of sizes; the largest number where it is more.
fn sum(sizes: &[usize]) -> usize {
    sizes.iter().fold(0, |sum: usize, &size| sum.saturating_add(size))
}
