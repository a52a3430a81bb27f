//! Colours of maps, with lightness that changes evenly to the eye.
//!
//! They are mixed in OKLab (Ottosson 2020), whose first coordinate is the lightness that people see
//! and in which equal distances look alike.

/// Number of different colours of a picture: as many as the eye tells apart, since each more makes
/// the file longer. It is odd, so that one of them is the middle.
pub(crate) const COLORS: usize = 127;

/// The colours of a scale.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Palette {
    /// From dark violet over green to bright yellow: viridis.
    Viridis,
    /// From white to dark purple.
    Purple,
    /// From blue over white to red, as dark on both sides.
    BlueRed,
}

/// A colour in OKLab: lightness, green to red, blue to yellow.
type Lab = [f64; 3];

/// Ten colours of viridis at even distances (Smith and van der Walt 2015, CC0).
const VIRIDIS: [[u8; 3]; 10] = [
    [0x44, 0x01, 0x54],
    [0x48, 0x28, 0x78],
    [0x3e, 0x49, 0x89],
    [0x31, 0x68, 0x8e],
    [0x26, 0x82, 0x8e],
    [0x1f, 0x9e, 0x89],
    [0x35, 0xb7, 0x79],
    [0x6e, 0xce, 0x58],
    [0xb5, 0xde, 0x2b],
    [0xfd, 0xe7, 0x25],
];

/// Chroma from white to dark at even steps of lightness.
const CHROMA: [f64; 5] = [0.004, 0.06, 0.12, 0.145, 0.11];

/// Lightness of white and of dark.
const LIGHTNESS: (f64, f64) = (0.97, 0.36);

impl Palette {
    /// The colour at `place` from 0 to 1, as sRGB.
    pub(crate) fn color(self, place: f64) -> [u8; 3] {
        srgb(self.lab(place)).map(|channel| (255.0 * channel.clamp(0.0, 1.0)).round() as u8)
    }

    fn lab(self, place: f64) -> Lab {
        match self {
            Self::Viridis => {
                let (from, to, share) = between(VIRIDIS.len(), place);
                let (a, b) = (lab(VIRIDIS[from]), lab(VIRIDIS[to]));
                std::array::from_fn(|i| mix(a[i], b[i], share))
            }
            Self::Purple => shade(310.0, place),
            Self::BlueRed if place < 0.5 => shade(255.0, 1.0 - 2.0 * place),
            Self::BlueRed => shade(28.0, 2.0 * place - 1.0),
        }
    }

    /// The colours as a CSS gradient from left to right.
    pub(crate) fn gradient(self) -> String {
        const STOPS: usize = 24;
        let stop = |i: usize| format!(",{}", hex(self.color(i as f64 / STOPS as f64)));
        format!("linear-gradient(90deg{})", (0..=STOPS).map(stop).collect::<String>())
    }
}

/// A colour as CSS writes it.
pub(crate) fn hex([red, green, blue]: [u8; 3]) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

/// A colour of the given hue in degrees between white, at 0, and dark, at 1.
fn shade(hue: f64, place: f64) -> Lab {
    let (from, to, share) = between(CHROMA.len(), place);
    let chroma = mix(CHROMA[from], CHROMA[to], share);
    let (sin, cos) = hue.to_radians().sin_cos();
    [mix(LIGHTNESS.0, LIGHTNESS.1, place), chroma * cos, chroma * sin]
}

/// The neighbours of `place` among `count` entries at even distances from 0 to 1, and how far it
/// is from the first to the second.
fn between(count: usize, place: f64) -> (usize, usize, f64) {
    let at = place.clamp(0.0, 1.0) * (count - 1) as f64;
    let from = (at as usize).min(count - 2);
    (from, from + 1, at - from as f64)
}

fn mix(from: f64, to: f64, share: f64) -> f64 {
    from + share * (to - from)
}

/// OKLab of an sRGB colour.
fn lab(color: [u8; 3]) -> Lab {
    let [r, g, b] = color.map(|channel| {
        let c = f64::from(channel) / 255.0;
        if c <= 0.04045 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
    });
    let l = (0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b).cbrt();
    let m = (0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b).cbrt();
    let s = (0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b).cbrt();
    [
        0.2104542553 * l + 0.7936177850 * m - 0.0040720468 * s,
        1.9779984951 * l - 2.4285922050 * m + 0.4505937099 * s,
        0.0259040371 * l + 0.7827717662 * m - 0.8086757660 * s,
    ]
}

/// The channels of sRGB, from 0 to 1 if the colour is one that a screen can show.
fn srgb([lightness, a, b]: Lab) -> [f64; 3] {
    let l = (lightness + 0.3963377774 * a + 0.2158037573 * b).powi(3);
    let m = (lightness - 0.1055613458 * a - 0.0638541728 * b).powi(3);
    let s = (lightness - 0.0894841775 * a - 1.2914855480 * b).powi(3);
    let linear = [
        4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
        -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
        -0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s,
    ];
    linear.map(|c| if c <= 0.0031308 { 12.92 * c } else { 1.055 * c.powf(1.0 / 2.4) - 0.055 })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Palette; 3] = [Palette::Viridis, Palette::Purple, Palette::BlueRed];

    /// Lightness of every colour, as the picture has it.
    fn lightness(palette: Palette) -> Vec<f64> {
        let place = |i: usize| i as f64 / (COLORS - 1) as f64;
        (0..COLORS).map(|i| lab(palette.color(place(i)))[0]).collect()
    }

    /// Whether each step has the given sign and is not more than twice their mean.
    fn is_even(lightness: &[f64], sign: f64) -> bool {
        // A step of the coarsest colour channel changes lightness by less than this.
        const ROUNDING: f64 = 0.004;
        let mean = (lightness[lightness.len() - 1] - lightness[0]) / (lightness.len() - 1) as f64;
        let even = |pair: &[f64]| {
            let step = sign * (pair[1] - pair[0]);
            step > -ROUNDING && step < 2.0 * mean.abs() + ROUNDING
        };
        sign * mean > 0.0 && lightness.windows(2).all(even)
    }

    #[test]
    fn lightness_changes_one_way_and_evenly() {
        assert!(is_even(&lightness(Palette::Viridis), 1.0));
        assert!(is_even(&lightness(Palette::Purple), -1.0));
        let both = lightness(Palette::BlueRed);
        let middle = COLORS / 2;
        assert!(is_even(&both[..=middle], 1.0) && is_even(&both[middle..], -1.0));
        for (i, left) in both[..middle].iter().enumerate() {
            let right = both[COLORS - 1 - i];
            assert!((left - right).abs() < 0.006, "colour {i}: {left} and {right}");
        }
    }

    #[test]
    fn a_screen_can_show_every_colour() {
        for palette in ALL {
            for i in 0..COLORS {
                let channels = srgb(palette.lab(i as f64 / (COLORS - 1) as f64));
                let shown = channels.iter().all(|c| (-0.004..1.004).contains(c));
                assert!(shown, "{palette:?} {i}: {channels:?}");
            }
        }
    }

    #[test]
    fn known_colours() {
        assert_eq!(Palette::Viridis.color(0.0), VIRIDIS[0]);
        assert_eq!(Palette::Viridis.color(1.0), VIRIDIS[9]);
        let [red, green, blue] = Palette::BlueRed.color(0.5).map(i32::from);
        assert!(red > 240 && (red - green).abs() < 8 && (red - blue).abs() < 8);
        let (cold, warm) = (Palette::BlueRed.color(0.1), Palette::BlueRed.color(0.9));
        assert!(cold[2] > cold[0] + 60 && warm[0] > warm[2] + 60);
        // Reference values of OKLab: white and pure red.
        let close = |a: Lab, b: Lab| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-3);
        assert!(close(lab([255; 3]), [1.0, 0.0, 0.0]));
        assert!(close(lab([255, 0, 0]), [0.628, 0.225, 0.126]));
    }

    #[test]
    fn a_gradient_has_the_ends_of_its_palette() {
        let gradient = Palette::Viridis.gradient();
        assert!(gradient.starts_with("linear-gradient(90deg,#440154,"), "{gradient}");
        assert!(gradient.ends_with(",#fde725)"), "{gradient}");
    }
}
