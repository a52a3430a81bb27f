//! Whatever the data, a plot is drawn: no panic, no endless axis, nothing a browser cannot read.

use bayesmesh_report::{
    Axis, Bar, Color, Interval, Layer, Plot, Rule, ScaleKind, Shape, format_number,
};

/// Values at the edges of what numbers, logarithms and calendars can do.
const VALUES: [f64; 24] = [
    f64::NAN,
    f64::INFINITY,
    f64::NEG_INFINITY,
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.1,
    1e-320,
    1e-150,
    1e-149,
    1e149,
    1e150,
    -1e150,
    f64::MAX,
    f64::MIN,
    1e12,
    9.99e12,
    1e13,
    -1e13,
    1e15,
    1e15 + 0.5,
    1.5e9,
    1.5e9 + 1e-6,
];

/// Indices that look random and are the same everywhere.
struct Choice(u64);

impl Choice {
    fn below(&mut self, n: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n
    }

    fn value(&mut self) -> f64 {
        VALUES[self.below(VALUES.len())]
    }

    fn axis(&mut self) -> Axis {
        let scale = [ScaleKind::Linear, ScaleKind::Log, ScaleKind::Time][self.below(3)];
        let range = (self.below(2) == 0).then(|| (self.value(), self.value()));
        Axis { label: "x".into(), unit: String::new(), scale, range }
    }

    fn layers(&mut self) -> Vec<Layer> {
        let triples: Vec<_> = (0..3).map(|_| (self.value(), self.value(), self.value())).collect();
        let pairs: Vec<_> = triples.iter().map(|&(x, y, _)| (x, y)).collect();
        let bar = |&(left, right, height): &(f64, f64, f64)| Bar { left, right, height };
        let bars = triples.iter().map(bar).collect();
        vec![match self.below(9) {
            0 => Layer::line("line", pairs, Color::Blue),
            1 => Layer::steps("steps", pairs, Color::Ink),
            2 => Layer::points("points", pairs, Color::Gold),
            3 => Layer::band("band", triples, Color::Green),
            4 => Layer::Bars { label: "bars".into(), bars, color: Color::Grey },
            5 => Layer::rule("diagonal", Rule::Diagonal),
            6 => Layer::rule("horizontal", Rule::Horizontal(self.value())),
            7 => Layer::rule("vertical", Rule::Vertical(self.value())),
            _ => {
                let interval = Interval { level: self.value(), points: triples };
                let plot = Plot::new("", Axis::default(), Axis::default());
                return plot.with_fan(vec![interval], Color::Blue).layers;
            }
        }]
    }

    fn plot(&mut self) -> Plot {
        let shape = [Shape::Wide, Shape::Half, Shape::Square][self.below(3)];
        let mut plot = Plot::new("extremes", self.axis(), self.axis()).shape(shape);
        for _ in 0..self.below(4) {
            plot.layers.extend(self.layers());
        }
        plot
    }
}

#[test]
fn extreme_values_make_short_and_readable_drawings() {
    let mut choice = Choice(1);
    for case in 0..60_000 {
        let plot = choice.plot();
        let svg = plot.to_svg();
        for word in ["NaN", "inf"] {
            assert!(!svg.contains(word), "case {case}: {word} in {svg}\nof {plot:?}");
        }
        assert!(svg.len() < 20_000, "case {case}: {} bytes of {plot:?}", svg.len());
    }
}

#[test]
fn extreme_numbers_have_a_text() {
    assert_eq!(VALUES.map(|value| format_number(value, 1)).iter().filter(|t| *t == "–").count(), 3);
}
