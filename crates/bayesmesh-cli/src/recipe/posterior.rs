//! `[posterior]`: what the weights are believed to be.

use serde::{Deserialize, Serialize};

use super::schema::{Absent, KIND, Key, Kind, Range, Section, Values};

/// What the weights are believed to be, and so what differs from draw to draw.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Posterior {
    /// Dropout masks that stay on in prediction.
    McDropout,
    /// An independent Gaussian for every weight.
    MeanField(MeanField),
    /// The ordinary network; dropout in training only.
    Point,
}

/// A Gaussian N(μ, σ²) for every weight but those of normalisation layers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeanField {
    /// Where σ starts.
    pub initial_std: f64,
    /// Whether the initial σ is multiplied by `1/√fan_in` of each layer.
    pub initial_std_per_fan_in: bool,
    /// How σ is made from the trained number ρ.
    pub scale: Scale,
    /// What the weights are believed to be before the data.
    pub prior: Prior,
    /// Whether the prior is multiplied by `1/√(3·fan_in)` of each layer.
    pub prior_per_fan_in: bool,
    /// How the distance to the prior is computed.
    pub kl: Kl,
}

/// How σ is made from ρ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// σ = exp(ρ).
    Exp,
    /// σ = ln(1 + exp(ρ)).
    Softplus,
}

/// What a weight is believed to be before the data.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Prior {
    /// N(mean, std²).
    Normal {
        /// The mean.
        mean: f64,
        /// The standard deviation.
        std: f64,
    },
    /// `weight·N(0, std_wide²) + (1 − weight)·N(0, std_narrow²)`.
    ScaleMixture {
        /// The share of the wide component.
        weight: f64,
        /// The standard deviation of the wide component.
        std_wide: f64,
        /// The standard deviation of the narrow component.
        std_narrow: f64,
    },
}

/// How the distance to the prior is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kl {
    /// In closed form; normal priors only.
    Analytic,
    /// The mean over the draws of `ln q(w) − ln p(w)`.
    MonteCarlo,
}

const MEAN_FIELD: &[&str] = &["mean-field"];

/// The closed form where there is one.
fn kl_of_prior(posterior: &toml::Table) -> &'static str {
    let prior = posterior.get("prior").and_then(|prior| prior.get(KIND));
    match prior.and_then(toml::Value::as_str) {
        Some("normal") => "\"analytic\"",
        _ => "\"monte-carlo\"",
    }
}

pub(super) static SECTION: Section = Section {
    name: "posterior",
    meaning: "What the weights are believed to be, and so what differs from draw to draw.",
    kinds: &[
        Kind::new(
            "mc-dropout",
            "dropout stays on in prediction; its masks differ from draw to draw",
        ),
        Kind::new(
            "mean-field",
            "variational inference with an independent Gaussian for every weight",
        ),
        Kind::new("point", "the ordinary network, for comparison; dropout in training only"),
    ],
    default_kind: None,
    keys: &[
        Key::new(
            "initial_std",
            Values::Number(Range::above(0.0)),
            Absent::Value("0.01"),
            "Where the standard deviations σ start. The means start as the network's own weights.",
        )
        .of(MEAN_FIELD)
        .also(&["std", "sigma", "init_std"]),
        Key::new(
            "initial_std_per_fan_in",
            Values::Flag,
            Absent::Value("true"),
            "Multiplies the initial σ of a layer by 1/√fan_in, as its initial weights are.",
        )
        .of(MEAN_FIELD),
        Key::new(
            "scale",
            Values::Choice(&["exp", "softplus"]),
            Absent::Value("\"exp\""),
            "How σ is made from the trained number ρ: exp(ρ), or ln(1 + exp(ρ)).",
        )
        .of(MEAN_FIELD)
        .also(&["parameterization", "parameterisation"]),
        Key::new(
            "prior_per_fan_in",
            Values::Flag,
            Absent::Value("false"),
            "Multiplies the prior of a layer by 1/√(3·fan_in).",
        )
        .of(MEAN_FIELD)
        .also(&["rescale_prior"]),
        Key::section("prior", &PRIOR).of(MEAN_FIELD),
        Key::new(
            "kl",
            Values::Choice(&["analytic", "monte-carlo"]),
            Absent::Derived(kl_of_prior, "`\"analytic\"`; `\"monte-carlo\"` for a scale mixture"),
            "How the distance KL(q‖p) to the prior is computed: in closed form, for normal priors \
             only, or as the mean over the draws of ln q(w) − ln p(w).",
        )
        .of(MEAN_FIELD),
    ],
    example: "[posterior]\nkind = \"mc-dropout\"",
};

static PRIOR: Section = Section {
    name: "posterior.prior",
    meaning: "What a weight is believed to be before the data. For `posterior.kind = \
              \"mean-field\"`.",
    kinds: &[
        Kind::new("normal", "N(mean, std²)"),
        Kind::new("scale-mixture", "weight·N(0, std_wide²) + (1 − weight)·N(0, std_narrow²)"),
    ],
    default_kind: Some("normal"),
    keys: &[
        Key::new("mean", Values::Number(Range::ANY), Absent::Value("0.0"), "The mean.")
            .of(&["normal"]),
        Key::new(
            "std",
            Values::Number(Range::above(0.0)),
            Absent::Value("1.0"),
            "The standard deviation.",
        )
        .of(&["normal"])
        .also(&["sigma"]),
        Key::new(
            "weight",
            Values::Number(Range::SHARE),
            Absent::Value("0.5"),
            "The share of the wide component.",
        )
        .of(&["scale-mixture"])
        .also(&["pi"]),
        Key::new(
            "std_wide",
            Values::Number(Range::above(0.0)),
            Absent::Value("1.0"),
            "The standard deviation of the wide component.",
        )
        .of(&["scale-mixture"])
        .also(&["sigma1"]),
        Key::new(
            "std_narrow",
            Values::Number(Range::above(0.0)),
            Absent::Value("0.01"),
            "The standard deviation of the narrow component.",
        )
        .of(&["scale-mixture"])
        .also(&["sigma2"]),
    ],
    example: "[posterior.prior]\nkind = \"normal\"\nstd = 1.0",
};
