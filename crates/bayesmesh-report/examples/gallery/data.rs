//! A made-up report of a load forecast, with every kind of block.

#[path = "weather.rs"]
pub mod weather;

use std::f64::consts::TAU;

use bayesmesh_report::{
    Axis, Block, Cell, Color, Gallery, Image, Interval, KeyFigure, Layer, Plot, Report, Rule,
    Section, Shape, Stroke, Table, format_number,
};

/// 2017-03-14 00:00 UTC.
const START: f64 = 1_489_449_600.0;

const QUARTER_HOUR: f64 = 900.0;

/// The whole report.
pub fn report() -> Report {
    Report {
        title: "Load forecast, MC dropout".into(),
        lead: "A two-layer network with dropout 0.1, trained with 16 draws per step on two ranks, \
               forecasts the next six hours of German load from the last twenty-four."
            .into(),
        headline: vec![
            KeyFigure::new("Test RMSE", format_number(1273.6, 0))
                .unit("MW")
                .note("same time yesterday: 6,781"),
            KeyFigure::new("90 % interval covers", "90.4").unit("%").note("of 62,976 test points"),
            KeyFigure::new("CRPS", format_number(684.2, 0)).unit("MW").note("persistence: 5,120"),
            KeyFigure::new("Training", "41.8").unit("s").note("12 epochs, 11,300 draws/s"),
        ],
        sections: vec![
            Section::new("Forecast")
                .text(
                    "Three days of the test part. Each quarter of an hour is forecast from what \
                       was known three hours before it.",
                )
                .with(Block::Plot(forecast())),
            Section::new("Training").with(Block::Plot(loss())).with(Block::Note(
                "The validation loss was lowest at step 4,260; these weights are \
                     `checkpoints/best.safetensors`."
                    .into(),
            )),
            Section::new("Calibration")
                .text("An honest interval of 90 % holds the truth nine times out of ten.")
                .with(Block::Plot(calibration()))
                .with(Block::Plot(reliability()))
                .with(Block::Plot(pit()))
                .with(Block::Plot(horizon())),
            weather::section(),
            Section::new("Scores").with(Block::Table(scores())),
            Section::new("What ran where").with(Block::Facts(facts())),
            Section::new("Images").with(Block::Images(images())).with(Block::Plot(Plot::new(
                "A plot without data",
                Axis::linear("step"),
                Axis::linear("loss"),
            ))),
        ],
        footer: "Made by BayesMesh 0.1.0 from `recipes/load-mlp.toml`, seed 7. Made-up data."
            .into(),
    }
}

/// A sequence that looks random and is the same everywhere: about normal, mean 0, variance 1.
fn noise(seed: u64) -> impl FnMut() -> f64 {
    let mut state = seed;
    let mut uniform = move || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    move || (0..12).map(|_| uniform()).sum::<f64>() - 6.0
}

/// A day of load in MW, by hour.
fn load(hour: f64) -> f64 {
    let wave = |period: f64, shift: f64| (TAU * (hour - shift) / period).cos();
    56_500.0 - 9_200.0 * wave(24.0, 2.2) - 3_100.0 * wave(12.0, 3.4) - 900.0 * hour / 24.0
        + 700.0 * wave(6.0, 1.0)
}

/// Fan chart of three days against the truth, which has a gap.
pub fn forecast() -> Plot {
    let mut noise = noise(3);
    let (mut error, mut truth, mut mean, mut spread) = (0.0, Vec::new(), Vec::new(), Vec::new());
    for i in 0..3 * 96 {
        let time = START + f64::from(i) * QUARTER_HOUR;
        let hour = f64::from(i) / 4.0;
        let sigma = 1_150.0 + 750.0 * (TAU * (hour - 15.0) / 24.0).cos().max(-0.4);
        error = 0.93 * error + 0.36 * noise();
        let missing = (130..137).contains(&i);
        let observed = load(hour) + error * sigma + 60.0 * noise();
        truth.push((time, if missing { f64::NAN } else { observed }));
        mean.push((time, load(hour)));
        spread.push(sigma);
    }
    let interval = |level: f64, z: f64| Interval {
        level,
        points: mean.iter().zip(&spread).map(|(&(t, m), s)| (t, m - z * s, m + z * s)).collect(),
    };
    let intervals = vec![interval(0.5, 0.674), interval(0.8, 1.282), interval(0.95, 1.96)];
    Plot::new("Load, three hours ahead", Axis::time("time, UTC"), Axis::linear("load").unit("MW"))
        .caption(
            "Mean and central intervals of 64 draws. The gap in the observed load is missing data.",
        )
        .with_fan(intervals, Color::Blue)
        .with(Layer::line("mean forecast", mean, Color::Blue))
        .with(Layer::line("observed", truth, Color::Ink).stroke(Stroke::Solid))
}

/// Loss curves of a long run on a logarithmic axis.
fn loss() -> Plot {
    let mut noise = noise(5);
    let mut at = |step: f64, floor: f64, jitter: f64| {
        let value = floor + 0.9 * (-step / 260.0).exp() + 0.05 * (-step / 1900.0).exp();
        (step, value * (jitter * noise()).exp())
    };
    let raw: Vec<_> = (0..200_000).map(|i| at(f64::from(i) * 0.025, 0.011, 0.12)).collect();
    let train: Vec<_> = (0..=100).map(|i| at(f64::from(i) * 50.0, 0.011, 0.02)).collect();
    let valid: Vec<_> = (0..=12).map(|i| at(f64::from(i) * 416.0, 0.0165, 0.01)).collect();
    Plot::new("Loss", Axis::linear("step"), Axis::log("mean squared error of scaled load"))
        .with(Layer::line("", raw, Color::Blue).stroke(Stroke::Thin))
        .with(Layer::line("training", train, Color::Blue))
        .with(Layer::line("validation", valid, Color::Orange))
        .with(Layer::rule("yesterday", Rule::Horizontal(0.31)))
        .with(Layer::rule("best weights", Rule::Vertical(4260.0)).stroke(Stroke::Dotted))
}

/// Observed against nominal coverage.
fn calibration() -> Plot {
    let levels: Vec<f64> = (1..20).map(|i| f64::from(i) * 0.05).collect();
    let observed = |bend: f64| levels.iter().map(move |&p| (p, p + bend * p * (1.0 - p)));
    let percent = |name: &str| Axis::linear(name).range(0.0, 1.0);
    Plot::new("Coverage of central intervals", percent("nominal"), percent("observed"))
        .shape(Shape::Square)
        .caption("Above the diagonal intervals are too wide, below it too narrow.")
        .with(Layer::rule("perfect", Rule::Diagonal))
        .with(Layer::line("dropout only", observed(-0.62), Color::Orange))
        .with(Layer::line("with observation noise", observed(0.07), Color::Blue))
        .with(Layer::points("with observation noise", observed(0.07), Color::Blue))
}

/// Accuracy by confidence, as of a classifier.
fn reliability() -> Plot {
    let edges: Vec<f64> = (0..=15).map(|i| f64::from(i) / 15.0).collect();
    let accuracy: Vec<f64> = edges
        .windows(2)
        .map(|edge| {
            let confidence = 0.5 * (edge[0] + edge[1]);
            if confidence < 0.1 {
                f64::NAN
            } else {
                confidence - 0.35 * confidence * (1.0 - confidence)
            }
        })
        .collect();
    let percent = |name: &str| Axis::linear(name).range(0.0, 1.0);
    Plot::new("Reliability", percent("confidence"), percent("accuracy"))
        .shape(Shape::Square)
        .caption("Accuracy in 15 bins of confidence; expected calibration error 5.8 %.")
        .with(Layer::histogram("accuracy", &edges, &accuracy, Color::Green))
        .with(Layer::rule("perfect", Rule::Diagonal))
}

/// Histogram of the probability integral transform.
fn pit() -> Plot {
    let edges: Vec<f64> = (0..=20).map(|i| f64::from(i) / 20.0).collect();
    let mut noise = noise(11);
    let heights: Vec<f64> = (0..20).map(|_| 1.0 + 0.055 * noise()).collect();
    Plot::new(
        "PIT histogram",
        Axis::linear("probability integral transform"),
        Axis::linear("density"),
    )
    .shape(Shape::Half)
    .caption("Flat when the predictive distribution is right.")
    .with(Layer::histogram("test part", &edges, &heights, Color::Blue))
    .with(Layer::band("95 % of flat samples", [(0.0, 0.89, 1.11), (1.0, 0.89, 1.11)], Color::Grey))
    .with(Layer::rule("flat", Rule::Horizontal(1.0)))
}

/// Error by lead time, in steps.
fn horizon() -> Plot {
    let steps = |scale: f64, power: f64| {
        (0..=24)
            .map(move |i| (f64::from(i) * 0.25, scale * (0.25 + f64::from(i) * 0.25).powf(power)))
    };
    Plot::new(
        "Error by lead time",
        Axis::linear("lead time").unit("h"),
        Axis::linear("RMSE").unit("MW"),
    )
    .shape(Shape::Half)
    .with(Layer::steps("persistence", steps(1_900.0, 0.9), Color::Grey))
    .with(Layer::steps("MC dropout", steps(620.0, 0.55), Color::Blue))
    .with(Layer::steps("mean-field VI", steps(690.0, 0.52), Color::Purple))
    .with(Layer::line("ensemble", steps(560.0, 0.55), Color::Gold).stroke(Stroke::Dashed))
}

fn scores() -> Table {
    let row = |name: &str, scores: [f64; 6]| {
        let decimals = [0, 0, 0, 1, 0, 3];
        let cells = scores.into_iter().zip(decimals).map(|(v, d)| Cell::number(v, d));
        std::iter::once(Cell::from(name)).chain(cells).collect()
    };
    let nan = f64::NAN;
    Table {
        caption: "Scores on the test part, 2016-11 to 2018-09; lower is better but for coverage."
            .into(),
        header: [
            "Model",
            "RMSE (MW)",
            "MAE (MW)",
            "CRPS (MW)",
            "90 % covers (%)",
            "Width (MW)",
            "NLL",
        ]
        .map(String::from)
        .to_vec(),
        rows: vec![
            row("MC dropout", [1273.6, 906.3, 684.2, 90.4, 4120.0, 0.412]),
            row("Mean-field VI", [1321.9, 951.7, 712.5, 88.9, 4015.0, 0.447]),
            row("Heteroscedastic", [1290.1, 921.0, 671.8, 90.1, 3874.0, 0.361]),
            row("Same time yesterday", [6781.2, 4689.5, nan, nan, nan, nan]),
            row("Persistence", [7350.8, 5120.4, nan, nan, nan, nan]),
        ],
        highlight: Some(0),
    }
}

fn facts() -> Vec<(String, String)> {
    [
        ("Command", "`bayesmesh train recipes/load-mlp.toml --mesh 2x1`"),
        ("Mesh", "2 × 1 (samples × data), thread ranks"),
        ("Rank 0", "draws 0–7, core 0"),
        ("Rank 1", "draws 8–15, core 1"),
        ("Device", "CPU, AVX-512, 2 cores"),
        ("Memory per rank", "predicted 48 MiB, measured 51 MiB"),
        ("Reduction", "reproducible (fixed tree)"),
        ("Seed", "7"),
        ("Data", "`entsoe_de_load_15min.csv`, 209,952 rows, 11 gaps filled"),
        ("Digest", "`8f14e45fceea167a5a36dedd4bea2543c9f0f895fb98ab9159f51fd0297e236d`"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .to_vec()
}

fn images() -> Gallery {
    let names = ["frog 0.92", "ship 0.71", "cat 0.38, dog 0.35", "truck 0.99"];
    let image = |(i, name): (usize, &str)| Image { png: png(8 + 8 * i), caption: name.into() };
    Gallery {
        caption: "Predicted class and probability.".into(),
        images: names.into_iter().enumerate().map(image).collect(),
    }
}

/// A small square PNG with a colour gradient, stored without compression.
fn png(size: usize) -> Vec<u8> {
    let mut pixels = Vec::new();
    for y in 0..size {
        pixels.push(0); // No filter in this row.
        for x in 0..size {
            let shade = |v: usize| (40 + 200 * v / size) as u8;
            pixels.extend([shade(x), shade(y), shade(size - x.max(y))]);
        }
    }
    let length = pixels.len() as u16;
    let (mut a, mut b) = (1u32, 0u32);
    for &byte in &pixels {
        a = (a + u32::from(byte)) % 65_521;
        b = (b + a) % 65_521;
    }
    // zlib: header, one stored block, Adler-32 checksum.
    let mut stream = vec![0x78, 0x01, 1];
    stream.extend(length.to_le_bytes());
    stream.extend((!length).to_le_bytes());
    stream.extend(&pixels);
    stream.extend((b << 16 | a).to_be_bytes());

    let side = (size as u32).to_be_bytes();
    let header = [&side[..], &side[..], &[8, 2, 0, 0, 0]].concat();
    let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
    for (name, content) in [(b"IHDR", &header), (b"IDAT", &stream), (b"IEND", &Vec::new())] {
        let body = [&name[..], &content[..]].concat();
        file.extend((content.len() as u32).to_be_bytes());
        file.extend(&body);
        file.extend(crc32(&body).to_be_bytes());
    }
    file
}

fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32, _| {
        if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 }
    };
    !bytes.iter().fold(u32::MAX, |crc, &byte| (0..8).fold(crc ^ u32::from(byte), step))
}
