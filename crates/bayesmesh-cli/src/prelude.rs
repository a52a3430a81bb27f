//! What a use case needs: `use bayesmesh_cli::prelude::*;`.

pub use anyhow::Result;
pub use bayesmesh::prelude::*;
pub use bayesmesh_models::{MlpConfig, VitConfig};
pub use bayesmesh_schema::{Choice, Keys, Kinds};

pub use crate::models::{Model, ModelEntry, Shape};
pub use crate::recipe::{Conflict, Recipe};
pub use crate::tasks::classification::{Classification, ClassificationAssessment};
pub use crate::tasks::regression::{Regression, RegressionAssessment};
pub use crate::use_cases::{
    BUILTIN, DataCommand, DataVerb, InputOf, Reported, Trained, UseCase, entry,
};
