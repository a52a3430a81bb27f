//! Whole pieces of work, alone and beside the competition, in alternation on this machine.
//!
//! usage: table [PYTHON] [--rounds N] [--mpi MPIRUN]     with a Python that has torch and
//! torch_blue, its figures too; with an `mpirun`, instead, what ranks that are processes do
//! prints a table and saves it with a plot in `target/bench`

use std::path::{Path, PathBuf};
use std::process::Command;

use bayesmesh_bench::PngFiles;
use bayesmesh_report::{Axis, Bar, Block, Cell, Color, Layer, Plot, Report, Section, Shape, Table};

/// Multiplications and additions of one image in one draw of the ViT, forward and backward: three
/// products of each linear layer, and seven of each head's scores and values (the backward pass
/// makes the scores again).
const VIT_FLOP: f64 = {
    let (tokens, width, depth, patch) = (64.0, 192.0, 6.0, 48.0);
    let linear = 3.0 * 2.0 * tokens * (depth * 12.0 * width * width + patch * width);
    let attention = 7.0 * 2.0 * depth * tokens * tokens * width;
    linear + attention
};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// One way to do a piece of work: a command that prints numbers, of which one counts, smaller being
/// better.
struct Contestant {
    name: &'static str,
    program: PathBuf,
    arguments: Vec<String>,
    /// Which one, from the end: the last one is 0.
    counts: usize,
    /// The best of the numbers that count, and the other numbers of that run.
    best: f64,
    others: Vec<f64>,
}

impl Contestant {
    /// Runs it once; its number.
    fn run(&mut self) -> Outcome<f64> {
        let output = Command::new(&self.program).args(&self.arguments).output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        let mut numbers: Vec<f64> =
            text.lines().filter_map(|line| line.trim().parse().ok()).collect();
        let place = numbers.len().checked_sub(1 + self.counts);
        let Some(place) = place.filter(|_| output.status.success()) else {
            let complaint = String::from_utf8_lossy(&output.stderr);
            return Err(format!("{} failed: {complaint}", self.name).into());
        };
        let number = numbers.remove(place);
        eprintln!("  {}: {number:.4}", self.name);
        if number < self.best {
            (self.best, self.others) = (number, numbers);
        }
        Ok(number)
    }
}

/// Who takes part.
struct Field {
    python: Option<PathBuf>,
    /// The command that starts ranks that are processes.
    mpirun: Option<String>,
    programs: PathBuf,
    rounds: usize,
}

/// A figure that the project holds itself to.
struct Figure {
    name: String,
    value: f64,
    bar: &'static str,
}

impl Field {
    fn ours(&self, name: &'static str, program: &str, arguments: &str) -> Contestant {
        Contestant {
            name,
            program: self.programs.join(program),
            arguments: arguments.split_whitespace().map(str::to_owned).collect(),
            counts: 0,
            best: f64::INFINITY,
            others: Vec::new(),
        }
    }

    /// A script of `bench/peers`, where there is a Python for it.
    fn peer(&self, name: &'static str, arguments: &str) -> Option<Contestant> {
        let contestant = self.ours(name, "", arguments);
        Some(Contestant { program: self.python.clone()?, ..contestant })
    }

    /// One of our programs on so many processes.
    fn job(&self, name: &'static str, ranks: usize, program: &str, arguments: &str) -> Contestant {
        let program = self.programs.join(program);
        let mpirun = self.mpirun.as_deref().unwrap_or("mpirun");
        let line = format!("{mpirun} -n {ranks} {} {arguments}", program.display());
        let mut words = line.split_whitespace();
        let launcher = words.next().unwrap_or_default();
        let arguments = words.map(str::to_owned).collect();
        Contestant { program: launcher.into(), arguments, ..self.ours(name, "", "") }
    }

    /// Runs the contestants in turn.
    fn compete(&self, work: &str, contestants: &mut [Contestant]) -> Outcome<()> {
        for round in 1..=self.rounds {
            eprintln!("{work}, round {round} of {}", self.rounds);
            for contestant in &mut *contestants {
                contestant.run()?;
            }
        }
        Ok(())
    }
}

fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    let (mut python, mut rounds, mut mpirun) = (None, 3, None);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--rounds" => rounds = arguments.next().ok_or("--rounds N")?.parse()?,
            "--mpi" => mpirun = Some(arguments.next().ok_or("--mpi MPIRUN")?),
            other => python = Some(PathBuf::from(other)),
        }
    }
    let programs = std::env::current_exe()?.parent().ok_or("no folder")?.to_path_buf();
    let field = Field { python, mpirun, programs, rounds };
    let works = match field.mpirun {
        None => vec![vit(&field)?, vit_16(&field)?, mlp(&field)?, normals(&field)?],
        Some(_) => vec![
            vit_on_processes(&field)?,
            slow_vit(&field)?,
            photo_vit(&field)?,
            slow_mlp(&field)?,
            quick_mlp(&field)?,
        ],
    };

    let folder = field.programs.parent().ok_or("no folder")?.join("bench");
    std::fs::create_dir_all(&folder)?;
    report(&works, &folder)
}

/// A piece of work: what it is, how all did, and the figures that follow.
struct Work {
    title: &'static str,
    unit: &'static str,
    contestants: Vec<Contestant>,
    figures: Vec<Figure>,
}

fn best(contestants: &[Contestant], name: &str) -> f64 {
    contestants.iter().find(|c| c.name == name).map_or(f64::NAN, |c| c.best)
}

/// `other / ours`, where there is another.
fn ratio(contestants: &[Contestant], ours: &str, other: &str, bar: &'static str) -> Option<Figure> {
    let value = best(contestants, other) / best(contestants, ours);
    let name = format!("{ours}, as many times as fast as {other}");
    value.is_finite().then_some(Figure { name, value, bar })
}

fn vit(field: &Field) -> Outcome<Work> {
    const ONE: &str = "1 rank, 1 thread, S = 1";
    const TWO: &str = "1 rank, 1 thread, S = 2";
    const PAIR: &str = "2 ranks, S = 2";
    const OURS: &str = "2 ranks, S = 4";
    const SPREAD: &str = "1 rank of 2 threads, S = 4";
    const BLUE: &str = "torch_blue, 2 ranks over gloo, S = 4";
    const EAGER: &str = "PyTorch, 2 threads, no KL, no Adam, S = 4";
    let mut contestants = vec![
        field.ours(OURS, "vit", "64 4 2x1 4 threads=1"),
        field.ours(SPREAD, "vit", "64 4 1x1 4 threads=2"),
        field.ours(ONE, "vit", "64 1 1x1 6 threads=1"),
        field.ours(TWO, "vit", "64 2 1x1 4 threads=1"),
        field.ours(PAIR, "vit", "64 2 2x1 6 threads=1"),
    ];
    let torchrun = "-m torch.distributed.run --nproc-per-node 2 bench/peers/vit_torch_blue.py";
    contestants.extend(field.peer(BLUE, &format!("{torchrun} 64 4 1 4")));
    contestants.extend(field.peer(EAGER, "bench/peers/vit_torch.py 64 4 2 4"));
    let title = "Training step of the Bayesian ViT, batch 64";
    field.compete(title, &mut contestants)?;
    // The best of several here too: the bound must not be an unlucky run.
    let mut product = field.ours("the product alone, 2 threads", "roofline", "2");
    let mut roofline = 0.0f64;
    for _ in 0..field.rounds {
        roofline = roofline.max(product.run()?);
    }
    let seconds = |name| best(&contestants, name);
    let rate = 4.0 * 64.0 * VIT_FLOP / 1e9 / seconds(OURS);
    let figure = |name: &str, value, bar| Figure { name: name.to_owned(), value, bar };
    let faults = contestants[0].others.get(1).copied().unwrap_or(f64::NAN);
    let mut figures = vec![
        figure("image-draws a second", 256.0 / seconds(OURS), ""),
        figure("share of the bound that products set", rate / roofline, "≥ 0.6"),
        figure("that bound, GFLOP/s on two cores", roofline, ""),
        figure("E(2), proportional samples", seconds(ONE) / seconds(PAIR), "≥ 0.95"),
        figure("S(2), fixed samples", seconds(TWO) / seconds(PAIR), "≥ 1.9"),
        figure("page faults of a step", faults, "0"),
    ];
    figures.extend(ratio(&contestants, OURS, SPREAD, "> 1"));
    figures.extend(ratio(&contestants, OURS, BLUE, "≥ 1.5"));
    figures.extend(ratio(&contestants, OURS, EAGER, "≥ 1.3"));
    Ok(Work { title, unit: "s", contestants, figures })
}

fn vit_on_processes(field: &Field) -> Outcome<Work> {
    const ONE: &str = "1 rank, S = 1";
    const TWO: &str = "1 rank, S = 2";
    const PAIR: &str = "2 ranks, S = 2";
    const AFTER: &str = "2 ranks, S = 2, sums after the backward pass";
    let mut contestants = vec![
        field.job(PAIR, 2, "vit", "64 2 2x1 6 threads=1"),
        field.job(ONE, 1, "vit", "64 1 1x1 6 threads=1"),
        field.job(TWO, 1, "vit", "64 2 1x1 4 threads=1"),
        field.job(AFTER, 2, "vit", "64 2 2x1 6 threads=1 overlap=false"),
    ];
    let title = "Training step of the Bayesian ViT on MPI processes of one thread, batch 64";
    field.compete(title, &mut contestants)?;
    let seconds = |name| best(&contestants, name);
    let figure = |name: &str, value, bar| Figure { name: name.to_owned(), value, bar };
    let percent = |c: &Contestant, place: usize| {
        c.others.get(place).map_or(f64::NAN, |milliseconds| milliseconds / 10.0 / c.best)
    };
    let figures = vec![
        figure("E(2), proportional samples", seconds(ONE) / seconds(PAIR), "≥ 0.95"),
        figure("S(2), fixed samples", seconds(TWO) / seconds(PAIR), "≥ 1.9"),
        figure("% of the step communicating, not hidden", percent(&contestants[0], 3), "≤ 3"),
        figure("the same, sums after the backward pass", percent(&contestants[3], 3), ""),
        figure("% waiting for that and for a slower rank", percent(&contestants[0], 4), ""),
        figure("the same, sums after the backward pass", percent(&contestants[3], 4), ""),
        figure(
            "% of the gradient handed over before the backward pass ends",
            contestants[0].others.get(5).map_or(f64::NAN, |share| 100.0 * share),
            "",
        ),
    ];
    Ok(Work { title, unit: "s", contestants, figures })
}

const SAMPLING: &str = "2 sample ranks, shared loading";
const ALONE: &str = "2 sample ranks, each loading everything";
const DATA: &str = "2 data ranks";
const SERIAL: &str = "1 rank";

/// Fixed draws on one rank and two, divided by draws or by data, with a loader.
fn loading(
    field: &Field,
    title: &'static str,
    unit: &'static str,
    program: &str,
    counts: usize,
    (shape, steps, loader): (&str, &str, &str),
) -> Outcome<Work> {
    let line =
        |mesh: &str, change: &str| format!("{shape} {mesh} {steps} threads=1 {loader} {change}");
    let mut contestants = [
        field.job(SAMPLING, 2, program, &line("2x1", "")),
        field.job(ALONE, 2, program, &line("2x1", "share_loading=false")),
        field.job(DATA, 2, program, &line("1x2", "")),
        field.job(SERIAL, 1, program, &line("1x1", "")),
    ]
    .map(|contestant| Contestant { counts, ..contestant });
    field.compete(title, &mut contestants)?;
    let speed_up = |name: &'static str| Figure {
        name: format!("speed-up of {name}"),
        value: best(&contestants, SERIAL) / best(&contestants, name),
        bar: "",
    };
    let figures = vec![
        speed_up(SAMPLING),
        speed_up(ALONE),
        speed_up(DATA),
        Figure {
            name: "draws divided against data divided".to_owned(),
            value: best(&contestants, DATA) / best(&contestants, SAMPLING),
            bar: "≥ 1",
        },
    ];
    Ok(Work { title, unit, contestants: contestants.into(), figures })
}

fn slow_vit(field: &Field) -> Outcome<Work> {
    let title = "ViT with 2 draws, batch 64, a loader that takes 25 ms an image, on MPI processes";
    // The mean over steps counts: some find a batch that was loaded ahead.
    loading(field, title, "s", "vit", 1, ("64 2", "10", "load_delay_ms=25"))
}

fn photo_vit(field: &Field) -> Outcome<Work> {
    let title = "ViT with 2 draws, batch 64, from PNG files of 512 x 512 pixels, on MPI processes";
    let folder = field.programs.join("../bench/png");
    PngFiles::new(&folder).make()?;
    let loader = format!("images={}", folder.display());
    loading(field, title, "s", "vit", 1, ("64 2", "10", &loader))
}

fn slow_mlp(field: &Field) -> Outcome<Work> {
    let title =
        "MLP with 16 draws, batch 64, a loader that takes 0.05 ms a window, on MPI processes";
    loading(field, title, "ms", "mlp", 0, ("64 16", "1000", "load_delay_ms=0.05"))
}

fn quick_mlp(field: &Field) -> Outcome<Work> {
    let title = "MLP with 16 draws, batch 64, windows in memory, on MPI processes";
    loading(field, title, "ms", "mlp", 0, ("64 16", "1000", ""))
}

fn vit_16(field: &Field) -> Outcome<Work> {
    const OURS: &str = "one process, 2 thread-ranks, S = 16";
    const BLUE: &str = "torch_blue, one process, 2 threads, S = 16";
    let mut contestants = vec![field.ours(OURS, "vit", "64 16 2x1 2 threads=1")];
    contestants.extend(field.peer(BLUE, "bench/peers/vit_torch_blue.py 64 16 2 2"));
    let title = "Training step of the Bayesian ViT with 16 draws, batch 64";
    field.compete(title, &mut contestants)?;
    let mut figures: Vec<Figure> = ratio(&contestants, OURS, BLUE, "≥ 3").into_iter().collect();
    let memory = |c: &Contestant| c.others.first().copied().unwrap_or(f64::NAN);
    figures.extend(contestants.iter().map(|c| Figure {
        name: format!("peak memory of {}, MiB", c.name),
        value: memory(c),
        bar: "",
    }));
    if let [ours, blue] = &contestants[..] {
        let value = memory(blue) / memory(ours);
        figures.push(Figure { name: "times less memory".to_owned(), value, bar: "≥ 6" });
    }
    Ok(Work { title, unit: "s", contestants, figures })
}

fn mlp(field: &Field) -> Outcome<Work> {
    const OURS: &str = "2 ranks";
    const TORCH: &str = "PyTorch, 2 threads";
    let mut contestants = vec![
        field.ours(OURS, "mlp", "64 16 2x1 300"),
        field.ours("1 rank", "mlp", "64 16 1x1 300"),
    ];
    contestants.extend(field.peer(TORCH, "bench/peers/mlp_torch.py 64 16 2 300"));
    contestants.extend(field.peer("PyTorch, 1 thread", "bench/peers/mlp_torch.py 64 16 1 300"));
    let title = "Training step of the load forecast's MLP, batch 64, 16 draws";
    field.compete(title, &mut contestants)?;
    let figures = ratio(&contestants, OURS, TORCH, "≥ 3").into_iter().collect();
    Ok(Work { title, unit: "ms", contestants, figures })
}

fn normals(field: &Field) -> Outcome<Work> {
    const OURS: &str = "fill_normal";
    const TORCH: &str = "PyTorch's normal_";
    let mut contestants = vec![field.ours(OURS, "normals", "")];
    contestants.extend(field.peer(TORCH, "bench/peers/normals_torch.py"));
    let title = "Ten million standard normals on one core";
    field.compete(title, &mut contestants)?;
    let figures = ratio(&contestants, OURS, TORCH, "").into_iter().collect();
    Ok(Work { title, unit: "ms", contestants, figures })
}

/// Prints the table and writes `table.csv` and `report.html`.
fn report(works: &[Work], folder: &Path) -> Outcome<()> {
    let mut csv = String::from("work,what,value,unit,bar\n");
    let mut page = Report {
        title: "BayesMesh benchmarks".to_owned(),
        lead: "Contestants ran in alternation on one machine; the best of the rounds counts."
            .to_owned(),
        ..Report::default()
    };
    for work in works {
        println!("\n{}", work.title);
        let mut section = Section::new(work.title);
        let mut plot =
            Plot::new("Time of a step", Axis::linear(""), Axis::linear("").unit(work.unit))
                .shape(Shape::Half)
                .caption("Shorter is better.");
        let colors =
            [Color::Blue, Color::Orange, Color::Green, Color::Purple, Color::Gold, Color::Grey];
        for (index, contestant) in work.contestants.iter().enumerate() {
            println!("  {:<52} {:10.4} {}", contestant.name, contestant.best, work.unit);
            csv += &format!(
                "{:?},{:?},{},{},\n",
                work.title, contestant.name, contestant.best, work.unit
            );
            let left = index as f64;
            plot = plot.with(Layer::Bars {
                label: contestant.name.to_owned(),
                bars: vec![Bar { left, right: left + 0.8, height: contestant.best }],
                color: colors[index % colors.len()],
            });
        }
        let mut rows = Vec::new();
        for Figure { name, value, bar } in &work.figures {
            println!("  {name:<76} {value:10.3}  {bar}");
            csv += &format!("{:?},{name:?},{value},,{bar:?}\n", work.title);
            rows.push(vec![Cell::from(name.as_str()), Cell::number(*value, 3), Cell::from(*bar)]);
        }
        let table = Table {
            header: ["", "measured", "held to"].map(Into::into).into(),
            rows,
            ..Table::default()
        };
        section = section.with(Block::Plot(plot)).with(Block::Table(table));
        page.sections.push(section);
    }
    std::fs::write(folder.join("table.csv"), csv)?;
    std::fs::write(folder.join("report.html"), page.to_html())?;
    println!("\n{}\n{}", folder.join("table.csv").display(), folder.join("report.html").display());
    Ok(())
}
