//! Layers whose randomness does not belong to the draw.

use burn::module::{Flag, Module, ModuleVisitor, Param};

/// The layers of a module that take random numbers from Burn's generator for the whole process:
/// `Dropout`, `GaussianNoise` and `RRelu` of `burn::nn`, also those inside its attention and
/// transformer layers. By their path, with the type of the layer: `encoder.dropout (Dropout)`.
///
/// A draw knows nothing of them: they are on in training, with numbers that depend on threads and
/// on what ran before, and off in prediction. Layers that are switched off, by a probability of
/// zero or by `freeze`, are not listed. Of a layer whose module hides it from `{:?}` the strength
/// is not known, and it is listed.
///
/// Calls of `Tensor::random` in a forward pass leave no trace in a module and are not found.
pub fn foreign_randomness<M: Module>(module: &M) -> Vec<String> {
    // In training mode, because only there is the flag of a layer set.
    let module = module.clone().train();
    let mut layers = Layers { text: format!("{module:?}"), ..Layers::default() };
    module.visit(&mut layers);
    layers.found
}

/// Goes through a module and lists layers.
#[derive(Default)]
struct Layers {
    /// The module as `{:?}` shows it, which is where the strengths of layers are. Parameters are in
    /// it by their identity only, so it is short.
    text: String,
    /// Names and types of containers down to where the visit is.
    path: Vec<(String, String)>,
    found: Vec<String>,
}

impl Layers {
    /// The constants of the layer that a flag belongs to, e.g. 0.5 of
    /// `Dropout { prob: 0.5, training: Param: ID - … }`.
    fn constants(&self, flag: &Param<Flag>) -> Option<Vec<f64>> {
        let end = self.text.find(&format!(", training: Param: {} ", flag.id))?;
        let (_, fields) = self.text[..end].rsplit_once('{')?;
        let numbers = fields.split(',').map(|field| field.rsplit_once(':')?.1.trim().parse().ok());
        numbers.collect()
    }
}

impl ModuleVisitor for Layers {
    fn enter_module(&mut self, name: &str, container: &str) {
        let layer = container.rsplit(':').next().unwrap_or(container);
        self.path.push((name.to_owned(), layer.to_owned()));
    }

    fn exit_module(&mut self, _name: &str, _container: &str) {
        self.path.pop();
    }

    fn visit_flag(&mut self, flag: &Param<Flag>) {
        let Some(((_, layer), above)) = self.path.split_last() else { return };
        let is_random = match (layer.as_str(), self.constants(flag).as_deref()) {
            ("Dropout" | "GaussianNoise", Some([strength])) => *strength != 0.0,
            ("RRelu", Some([lower, upper])) => lower != upper,
            ("Dropout" | "GaussianNoise" | "RRelu", _) => true,
            _ => false,
        };
        if is_random && flag.is_enabled() {
            let names: Vec<&str> = above.iter().map(|(name, _)| name.as_str()).collect();
            self.found.push(format!("{} ({layer})", names.join(".")));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::nn::activation::RReluConfig;
    use burn::nn::attention::{MultiHeadAttention, MultiHeadAttentionConfig};
    use burn::nn::transformer::{TransformerEncoder, TransformerEncoderConfig};
    use burn::nn::{
        BatchNorm, BatchNormConfig, Dropout, DropoutConfig, GaussianNoise, GaussianNoiseConfig,
        Linear, LinearConfig,
    };
    use burn::tensor::Device;
    use std::fmt;

    /// Random layers in all kinds of places.
    #[derive(Module, Debug)]
    struct Everywhere {
        linear: Linear,
        norm: BatchNorm,
        dropout: Dropout,
        layers: Vec<Dropout>,
        noise: Option<GaussianNoise>,
        attention: MultiHeadAttention,
        encoder: TransformerEncoder,
        slope: burn::nn::activation::RRelu,
    }

    fn everywhere(strength: f64) -> Everywhere {
        let device = Device::default();
        let dropout = || DropoutConfig::new(strength).init();
        Everywhere {
            linear: LinearConfig::new(4, 4).init(&device),
            norm: BatchNormConfig::new(4).init(&device),
            dropout: dropout(),
            layers: vec![dropout(), dropout()],
            noise: Some(GaussianNoiseConfig::new(strength).init()),
            attention: MultiHeadAttentionConfig::new(4, 2).with_dropout(strength).init(&device),
            encoder: TransformerEncoderConfig::new(4, 8, 2, 1).with_dropout(strength).init(&device),
            slope: RReluConfig::new().with_lower(0.2).with_upper(0.2 + strength).init(),
        }
    }

    #[test]
    fn all_of_burns_random_layers_are_named() {
        let found = foreign_randomness(&everywhere(0.1));
        for expected in [
            "dropout (Dropout)",
            "layers.0 (Dropout)",
            "layers.1 (Dropout)",
            "noise (GaussianNoise)",
            "attention.dropout (Dropout)",
            "encoder.layers.0.mha.dropout (Dropout)",
            "encoder.layers.0.pwff.dropout (Dropout)",
            "encoder.layers.0.dropout (Dropout)",
            "slope (RRelu)",
        ] {
            assert!(found.iter().any(|layer| layer == expected), "{expected} not in {found:?}");
        }
        assert_eq!(found.len(), 9, "{found:?}");
    }

    #[test]
    fn layers_that_are_switched_off_are_not() {
        assert_eq!(foreign_randomness(&everywhere(0.0)), [""; 0]);
        assert_eq!(foreign_randomness(&everywhere(0.1).freeze()), [""; 0]);
        let linear = LinearConfig::new(2, 2).init(&Device::default());
        assert_eq!(foreign_randomness(&linear), [""; 0]);
        // One of several.
        let mut some = everywhere(0.0);
        some.layers[1] = DropoutConfig::new(0.3).init();
        assert_eq!(foreign_randomness(&some), ["layers.1 (Dropout)"]);
    }

    #[test]
    fn a_module_for_prediction_is_seen_as_it_trains() {
        let module = vec![DropoutConfig::new(0.3).init()].valid();
        assert_eq!(foreign_randomness(&module), ["0 (Dropout)"]);
    }

    /// Tells nothing of itself.
    #[derive(Module)]
    struct Shy {
        dropout: Dropout,
    }

    impl fmt::Debug for Shy {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("Shy")
        }
    }

    #[test]
    fn a_layer_of_unknown_strength_is_named() {
        let shy = Shy { dropout: DropoutConfig::new(0.0).init() };
        assert_eq!(foreign_randomness(&shy), ["dropout (Dropout)"]);
    }
}
