//! The shifted-window transformer of the weather forecast at full size: steps of a Bayesian one
//! with sampling, KL and Adam, or the forward and backward pass of one draw alone.
//!
//! usage: swin train DRAWS MESH STEPS [KEY=VALUE ...]     e.g. `swin train 2 2x1 2 threads=1`
//!        swin pass THREADS STEPS [KEY=VALUE ...]         the passes of a network of plain weights
//!
//! Beside the settings, KEY may be `small=true` (a tiny network for a quick try), `grid=61x96`
//! (fewer points, as many weights), `checkpoint=true` (blocks are run again in the backward pass)
//! and `augment=K` (turn the globe by K columns). Prints what the steps are said to hold in MiB,
//! for each step the seconds and the processor seconds of a draw and the most MiB held by then;
//! then the most MiB of all, the end of the run included, and last the seconds of a draw in the
//! best step.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use bayesmesh::checkpoint::Checkpoint;
use bayesmesh::comm::Communicator;
use bayesmesh::loss::{Combine, GaussianOfDraws};
use bayesmesh::posterior::Tape;
use bayesmesh::trainer::{Callback, EpochReport, Flow, Footprint, Memory, Sizes, StepReport};
use bayesmesh::{
    Draw, Length, MeanField, Mesh, Network, Place, Point, Posterior, Prior, Purpose, Settings,
    Stream, TensorDataset, Trainer, process_memory,
};
use bayesmesh_bench::changed;
use bayesmesh_models::SwinConfig;
use burn::tensor::{Device, Int, Tensor, TensorData};

type Outcome = Result<(), Box<dyn std::error::Error>>;

const USAGE: &str = "usage: swin train DRAWS MESH STEPS [KEY=VALUE ...] | swin pass THREADS STEPS \
                     [KEY=VALUE ...]";

#[global_allocator]
static ALLOCATOR: bayesmesh::process_memory::Allocator = bayesmesh::process_memory::Allocator;

fn main() -> Outcome {
    bayesmesh_bench::run(|world| {
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
        match words[..] {
            ["train", draws, mesh, steps, ref changes @ ..] => {
                let (work, changes) = Work::new(changes)?;
                let settings = Settings {
                    samples: draws.parse()?,
                    batch: 1,
                    mesh: mesh.parse::<Mesh>()?,
                    memory: Memory::Retain,
                    ..Settings::default()
                };
                work.train(world, changed(settings, &changes)?, steps.parse()?)
            }
            ["pass", threads, steps, ref changes @ ..] => {
                let (work, _) = Work::new(changes)?;
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads.parse()?).build()?;
                let steps = steps.parse()?;
                pool.install(|| work.pass(steps));
                Ok(())
            }
            _ => Err(USAGE.into()),
        }
    })
}

/// A network and one example.
struct Work {
    config: SwinConfig,
    turn: i64,
}

impl Work {
    /// With what of the changes is about the network; the others are of the settings.
    fn new(changes: &[&str]) -> Result<(Self, Vec<String>), Box<dyn std::error::Error>> {
        let mut work = Self { config: SwinConfig::paper(76, 69, 121, 240), turn: 0 };
        let mut others = Vec::new();
        for change in changes {
            match change.split_once('=') {
                Some(("small", "true")) => {
                    let checkpoint_blocks = work.config.checkpoint_blocks;
                    let config = SwinConfig::small(8, 5, 13, 24);
                    let (width, window) = (24, [3, 6]);
                    work.config = SwinConfig { width, window, checkpoint_blocks, ..config };
                }
                Some(("grid", value)) => {
                    let (rows, columns) = value.split_once('x').ok_or("grid=ROWSxCOLUMNS")?;
                    work.config.latitudes = rows.parse()?;
                    work.config.longitudes = columns.parse()?;
                }
                Some(("checkpoint", value)) => work.config.checkpoint_blocks = value.parse()?,
                Some(("augment", value)) => work.turn = value.parse()?,
                _ => others.push((*change).to_owned()),
            }
        }
        Ok((work, others))
    }

    fn input(&self) -> (Tensor<4>, Tensor<1, Int>) {
        let SwinConfig { channels, latitudes, longitudes, .. } = self.config;
        let fields = noise(0, [1, channels, latitudes, longitudes]);
        (fields, Tensor::from_data(TensorData::new(vec![self.turn], [1]), &Device::default()))
    }

    fn target(&self) -> Tensor<2> {
        let SwinConfig { variables, latitudes, longitudes, .. } = self.config;
        noise(1, [1, variables * latitudes * longitudes])
    }

    /// Forward and backward passes of one draw.
    fn pass(&self, steps: usize) {
        let posterior = Point::new(self.config.init(&Device::default())).initialised(0);
        let snapshot = posterior.parameters().snapshot();
        let draw = Draw::new(0, 0, 0);
        let mut best = f64::INFINITY;
        for step in 0..steps {
            let network = snapshot.draw(&draw, Tape::Recording).network;
            let (start, processor) = (Instant::now(), processor_seconds());
            let output = network.forward(self.input(), &draw);
            let forward = start.elapsed().as_secs_f64();
            let target = Tensor::from_inner(self.target());
            drop((output - target).square().mean().backward());
            let seconds = start.elapsed().as_secs_f64();
            let processor = processor_seconds() - processor;
            println!("step {step}: {seconds} s, forward {forward} s, processor {processor} s");
            best = best.min(seconds);
        }
        finish(best);
    }

    fn train(
        &self,
        world: Option<Arc<dyn Communicator>>,
        settings: Settings,
        steps: usize,
    ) -> Outcome {
        let network = self.config.init(&Device::default());
        let posterior = MeanField::new(network, Prior::normal(0.0, 1.0))?.initialised(0);
        let weights = self.config.weights();
        let (input, target) = (self.input(), self.target());
        let outputs = target.shape().num_elements() as u64;
        let sizes = Sizes {
            weights,
            numbers: posterior.parameters().values().len() as u64,
            activations: self.config.activations(),
            example: input.0.shape().num_elements() as u64 + outputs,
            outputs,
        };
        let footprint = Footprint::of(&settings, Combine::Moments, &sizes);
        let ranks_here = if world.is_some() { 1 } else { settings.mesh.size() };
        println!("predicted {}", mebibytes(ranks_here as u64 * footprint.total()));
        let data = TensorDataset::new(input, target)?;
        let clock = Clock::default();
        let place = world.clone().map_or(Place::Threads, Place::Job);
        let draws = settings.samples as f64;
        let mut trainer = Trainer::at(place, posterior, GaussianOfDraws::default(), settings)?
            .with_callback(clock.clone());
        trainer.fit(&data, None, Length::Steps(steps + 1))?;
        if world.is_some_and(|world| world.rank() > 0) {
            return Ok(());
        }
        let times = clock.0.lock().expect("not poisoned").clone();
        let mut best = f64::INFINITY;
        for (step, pair) in times.windows(2).enumerate() {
            let seconds = (pair[1].0 - pair[0].0).as_secs_f64() / draws;
            let processor = (pair[1].1 - pair[0].1) / draws;
            let peak = mebibytes(pair[1].2);
            println!("step {step}: {seconds} s/draw, processor {processor} s/draw, peak {peak}");
            best = best.min(seconds);
        }
        finish(best);
        Ok(())
    }
}

fn finish(best: f64) {
    println!("{}", mebibytes(process_memory::peak_bytes().unwrap_or(0)));
    println!("{best}");
}

fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

/// When each step ended, by the clock and by the processor, and the most memory held by then.
#[derive(Clone, Default)]
struct Clock(Arc<Mutex<Vec<(Instant, f64, u64)>>>);

impl Callback for Clock {
    fn wants_checkpoint(&self, _: &StepReport) -> bool {
        false
    }

    // A step is an epoch of the one example.
    fn wants_checkpoint_of_epoch(&self, _: &EpochReport) -> bool {
        false
    }

    fn on_step(&mut self, _: &StepReport, _: &dyn Fn() -> Checkpoint) -> bayesmesh::Result<Flow> {
        self.0.lock().expect("not poisoned").push((
            Instant::now(),
            processor_seconds(),
            process_memory::peak_bytes().unwrap_or(0),
        ));
        Ok(Flow::Continue)
    }
}

/// Seconds that all threads of the process have computed.
fn processor_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = text.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace();
    // User and system time in ticks of a hundredth.
    let ticks: f64 = fields.skip(11).take(2).filter_map(|n| n.parse::<f64>().ok()).sum();
    ticks / 100.0
}

fn noise<const D: usize>(tensor: u32, shape: [usize; D]) -> Tensor<D> {
    let mut values = vec![0.0; shape.iter().product()];
    Stream::new(0, Purpose::Synthesis).at_tensor(tensor).fill_normal(0, &mut values);
    Tensor::from_data(TensorData::new(values, shape), &Device::default())
}
