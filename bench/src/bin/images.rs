//! Folders of images: what decoding and varying cost beside a training step of the residual
//! network.
//!
//! usage: images FOLDER SIZE BATCH STEPS     on one thread; prints the milliseconds that an image
//! takes to be read, decoded and resized; the milliseconds that an image of a batch takes to be
//! taken from memory, and to be varied once; and, last, the milliseconds of the best step of a
//! point network with Adam on such a batch, divided by its images

use std::sync::{Arc, Mutex};
use std::time::Instant;

use bayesmesh::checkpoint::Checkpoint;
use bayesmesh::loss::{Categorical, Expected};
use bayesmesh::trainer::{Callback, Flow, StepReport};
use bayesmesh::{Dataset, Length, Point, Purpose, Settings, Stream, TensorDataset, Trainer};
use bayesmesh_data::images::{Augmentation, ImageFolder, ImageSet, Reading};
use bayesmesh_models::ResNetConfig;
use burn::tensor::Device;

#[global_allocator]
static ALLOCATOR: bayesmesh::process_memory::Allocator = bayesmesh::process_memory::Allocator;

/// When each step ended.
#[derive(Clone, Default)]
struct Clock(Arc<Mutex<Vec<Instant>>>);

impl Callback for Clock {
    fn wants_checkpoint(&self, _: &StepReport) -> bool {
        false
    }

    fn on_step(&mut self, _: &StepReport, _: &dyn Fn() -> Checkpoint) -> bayesmesh::Result<Flow> {
        self.0.lock().expect("not poisoned").push(Instant::now());
        Ok(Flow::Continue)
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    bayesmesh::process_memory::keep_freed();
    rayon::ThreadPoolBuilder::new().num_threads(1).build_global()?;
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, size, batch, steps] = &arguments[..] else {
        return Err("usage: images FOLDER SIZE BATCH STEPS".into());
    };
    let (size, batch, steps): (usize, usize, usize) =
        (size.parse()?, batch.parse()?, steps.parse()?);
    let folder = ImageFolder::open(folder, None)?;
    let files = folder.parts[0].clone().unwrap_or_default();
    let count = files.len();
    let milliseconds =
        |start: Instant, count: usize| 1e3 * start.elapsed().as_secs_f64() / count as f64;

    let start = Instant::now();
    let (set, broken) = ImageSet::read(files, Reading { size, keep: true, progress: &|| {} })?;
    println!(
        "reading, decoding, resizing: {:.3} ms an image, {} broken",
        milliseconds(start, count),
        broken.len()
    );
    let scale = set.statistics();
    let varied = Augmentation { crop: 0.3, flip: true, colour: 0.2, operations: 0, strength: 0.0 };
    let set = set.normalised(scale)?.augmented(Some(varied));

    let device = Device::default();
    let rows: Vec<usize> = (0..batch).collect();
    let start = Instant::now();
    for _ in 0..steps {
        set.batch(&rows, &device)?;
    }
    println!("from memory: {:.3} ms an image", milliseconds(start, steps * batch));
    let (images, labels) = set.batch(&rows, &device)?;
    let start = Instant::now();
    for step in 0..steps {
        set.augment(&images, &rows, &Stream::new(0, Purpose::Augmentation).at_step(step as u32));
    }
    println!("varied: {:.3} ms an image", milliseconds(start, steps * batch));

    let config = ResNetConfig {
        image: size,
        channels: 3,
        classes: folder.classes.len(),
        width: 32,
        blocks: vec![2, 2, 2],
        stride: 2,
        groups: 8,
        dropout: 0.0,
    };
    let settings = Settings { samples: 1, batch, threads: Some(1), ..Settings::default() };
    let clock = Clock::default();
    let mut trainer =
        Trainer::new(Point::new(config.init(&device)), Expected(Categorical), settings)
            .with_callback(clock.clone());
    trainer.fit(&TensorDataset::new(images, labels)?, None, Length::Steps(steps + 1))?;
    let ends = clock.0.lock().expect("not poisoned");
    let best =
        ends.windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64()).fold(f64::MAX, f64::min);
    println!("a step: {:.3} ms an image", 1e3 * best / batch as f64);
    Ok(())
}
