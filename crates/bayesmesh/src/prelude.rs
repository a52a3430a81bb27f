//! What most programs need: `use bayesmesh::prelude::*;`.

pub use crate::loss::{
    Categorical, EnsembleCrps, Expected, ExpectedSquaredError, Gaussian, Loss, Mixture,
    SquaredErrorOfMean,
};
pub use crate::trainer::{
    BestCheckpoint, EarlyStopping, Length, OptimizerConfig, Place, Progress, Schedule, Settings,
    Trainer,
};
pub use crate::{
    CalibrateConfig, Dataset, Draw, Ensemble, LearnedNoise, McDropout, MeanField, Mesh, Network,
    Point, Posterior, Predictive, Predictor, Prior, Scoring, Standardize, TensorDataset,
};
