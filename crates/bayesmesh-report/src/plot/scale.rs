//! From values to pixels.

use super::axis::ScaleKind;

/// Beyond this size a value counts as missing: differences and products of larger ones overflow.
const LARGEST: f64 = 1e150;

/// Pixels beyond this are cut off, so that a line to a far point stays a short text.
const FARTHEST: f64 = 20_000.0;

/// Whether `value` can be placed on an axis of this kind.
pub(crate) fn is_usable(value: f64, kind: ScaleKind) -> bool {
    value.abs() <= LARGEST && (kind != ScaleKind::Log || value >= 1.0 / LARGEST)
}

/// The map from the values of an axis to pixels.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scale {
    kind: ScaleKind,
    domain: (f64, f64),
    pixels: (f64, f64),
}

impl Scale {
    /// Maps `domain`, whose first value is below its second and which is usable on an axis of this
    /// kind, to `pixels`, in either direction.
    pub(crate) fn new(kind: ScaleKind, domain: (f64, f64), pixels: (f64, f64)) -> Self {
        Self { kind, domain, pixels }
    }

    /// The pixel of `value`, or `None` if it has no place on this axis.
    pub(crate) fn at(&self, value: f64) -> Option<f64> {
        if !is_usable(value, self.kind) {
            return None;
        }
        let place = |v: f64| {
            if self.kind == ScaleKind::Log { v.ln() } else { v }
        };
        let (from, to) = (place(self.domain.0), place(self.domain.1));
        let share = (place(value) - from) / (to - from);
        let pixel = self.pixels.0 + share * (self.pixels.1 - self.pixels.0);
        Some(pixel.clamp(-FARTHEST, FARTHEST))
    }

    /// The pixel where bars stand: of zero, or of the lower end where zero has no place.
    pub(crate) fn base(&self) -> f64 {
        self.at(0.0).unwrap_or(self.pixels.0)
    }

    /// The visible range of values.
    pub(crate) fn domain(&self) -> (f64, f64) {
        self.domain
    }

    /// How values map to pixels.
    pub(crate) fn kind(&self) -> ScaleKind {
        self.kind
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linear_maps_ends_and_middle() {
        let scale = Scale::new(ScaleKind::Linear, (10.0, 20.0), (100.0, 0.0));
        assert_eq!(scale.at(10.0), Some(100.0));
        assert_eq!(scale.at(15.0), Some(50.0));
        assert_eq!(scale.at(20.0), Some(0.0));
        assert_eq!(scale.at(f64::NAN), None);
        assert_eq!(scale.at(f64::NEG_INFINITY), None);
        assert_eq!(scale.at(1e149), Some(-FARTHEST));
    }

    #[test]
    fn log_maps_ratios_and_refuses_what_is_not_positive() {
        let scale = Scale::new(ScaleKind::Log, (1e-2, 1e2), (0.0, 400.0));
        let middle = scale.at(1.0).expect("positive");
        assert!((middle - 200.0).abs() < 1e-9);
        assert_eq!(scale.at(0.0), None);
        assert_eq!(scale.at(-1.0), None);
        assert_eq!(scale.base(), 0.0);
    }
}
