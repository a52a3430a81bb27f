//! Writing forecasts, and fetching parts of stores from a server.

mod common;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use bayesmesh_data::era5::{
    FetchConfig, ForecastConfig, ForecastWriter, Grid, Store, SynthConfig, Synthetic, Variable,
    fetch, parse_date, silent,
};
use bayesmesh_files::testing::{Scratch, names};
use common::assert_says;

const HOUR: i64 = 3600;

fn config() -> ForecastConfig {
    let variables = ["2m_temperature", "geopotential.500", "temperature.850", "geopotential.850"];
    ForecastConfig {
        grid: Grid::even(5, 8),
        variables: variables.map(|name| name.parse().unwrap()).to_vec(),
        units: vec![Some("K".to_owned()), None, None, None],
        times: ["2020-01-01", "2020-01-02T12"].map(|date| parse_date(date).unwrap()).to_vec(),
        leads: vec![6 * HOUR, 12 * HOUR, 18 * HOUR],
        numbers: 2,
        attributes: serde_json::Map::new(),
    }
}

/// Says where it stands.
fn value(time: usize, lead: usize, number: usize, variable: usize, point: usize) -> f32 {
    (((time * 3 + lead) * 2 + number) * 4 + variable) as f32 * 100.0 + point as f32
}

fn values(time: usize, lead: usize, number: usize) -> Vec<f32> {
    (0..4 * 40).map(|i| value(time, lead, number, i / 40, i % 40)).collect()
}

#[test]
fn forecasts_are_read_back() {
    let scratch = Scratch::new();
    let path = scratch.path().join("forecast.zarr");
    let writer = ForecastWriter::create(&path, config(), false).unwrap();
    thread::scope(|scope| {
        for number in 0..2 {
            let writer = &writer;
            scope.spawn(move || {
                for (time, lead) in (0..6).map(|k| (k % 2, k / 2)) {
                    writer.write(time, lead, number, &values(time, lead, number)).unwrap();
                }
            });
        }
    });
    assert!(!path.exists());
    writer.finish().unwrap();
    assert_eq!(scratch.names(), ["forecast.zarr"]);
    let store = Store::open(path.to_str().unwrap()).unwrap();
    assert_eq!(store.grid(), &config().grid);
    assert_eq!(store.times(), config().times);
    assert_eq!(store.coordinate("prediction_timedelta").unwrap(), [6.0, 12.0, 18.0]);
    assert_eq!(store.coordinate("number").unwrap(), [0.0, 1.0]);
    for (variable, place) in config().variables.iter().zip(0..) {
        for time in 0..2 {
            for lead in 0..3 {
                for number in 0..2 {
                    let others = [("prediction_timedelta", lead), ("number", number)];
                    let field = store.read_at(variable, time, &others).unwrap();
                    let expected: Vec<f32> =
                        (0..40).map(|point| value(time, lead, number, place, point)).collect();
                    assert_eq!(field, expected, "{variable} {time} {lead} {number}");
                }
            }
        }
    }
    // A level that a variable has not.
    let none = store.read_at(
        &Variable::at("temperature", 500),
        0,
        &[("prediction_timedelta", 0), ("number", 0)],
    );
    assert!(none.unwrap().iter().all(|value| value.is_nan()));
    assert_says(
        store.read(&Variable::surface("2m_temperature"), 0).unwrap_err(),
        &["has the dimensions", "prediction_timedelta"],
    );
    let told = |name: &str, key: &str| store.array_attributes(name).unwrap()[key].clone();
    assert_eq!(told("geopotential", "units"), "m**2 s**-2");
    assert_eq!(told("2m_temperature", "standard_name"), "air_temperature");
    assert_eq!(told("time", "units"), "hours since 1970-01-01");
}

#[test]
fn xarray_reads_forecasts() {
    let python = std::env::var("BAYESMESH_PYTHON").unwrap_or("python3".to_owned());
    let has = Command::new(&python).args(["-c", "import xarray, zarr"]).output();
    if !has.is_ok_and(|output| output.status.success()) {
        eprintln!(
            "skipped: {python} has no xarray and zarr; BAYESMESH_PYTHON names another Python"
        );
        return;
    }
    let scratch = Scratch::new();
    let path = scratch.path().join("forecast.zarr");
    let writer = ForecastWriter::create(&path, config(), false).unwrap();
    for (time, lead, number) in (0..12).map(|k| (k % 2, k / 2 % 3, k / 6)) {
        writer.write(time, lead, number, &values(time, lead, number)).unwrap();
    }
    writer.finish().unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/check_forecast.py");
    let output = Command::new(python).arg(script).arg(&path).output().unwrap();
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "{said}");
    assert_says(
        said,
        &["geopotential: {'time': 2, 'prediction_timedelta': 3, 'number': 2, 'level': 2"],
    );
    // A value by its coordinates: time 1, lead 2, draw 1, the second row from the north, 45° east.
    let ask = "import sys, xarray as xr; d = xr.open_zarr(sys.argv[1]).sel(time='2020-01-02T12', \
               prediction_timedelta='18h', number=1, level=850, latitude=45, longitude=45); \
               print(float(d.geopotential), float(d['2m_temperature']))";
    let python = std::env::var("BAYESMESH_PYTHON").unwrap_or("python3".to_owned());
    let output = Command::new(python).args(["-c", ask]).arg(&path).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let expected = format!("{:?} {:?}", value(1, 2, 1, 3, 9), value(1, 2, 1, 0, 9));
    assert_eq!(said.trim(), expected, "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn forecasts_are_complete_or_not_there() {
    let scratch = Scratch::new();
    let path = scratch.path().join("forecast.zarr");
    let writer = ForecastWriter::create(&path, config(), false).unwrap();
    writer.write(0, 0, 0, &values(0, 0, 0)).unwrap();
    let error = writer.finish().unwrap_err();
    assert_says(
        error,
        &["forecast.zarr", "draw 1 of the forecast from 2020-01-01T00:00:00Z at 6 h"],
    );
    drop(ForecastWriter::create(&path, config(), false).unwrap());
    assert!(scratch.names().is_empty());
    let whole = |replace: bool| {
        let config = ForecastConfig { numbers: 1, ..config() };
        let writer = ForecastWriter::create(&path, config, replace)?;
        for (time, lead) in (0..6).map(|k| (k % 2, k / 2)) {
            writer.write(time, lead, 0, &values(time, lead, 0))?;
        }
        writer.finish()
    };
    whole(false).unwrap();
    assert_says(whole(false).unwrap_err(), &["exists already"]);
    whole(true).unwrap();
    assert_eq!(scratch.names(), ["forecast.zarr"]);
}

/// Serves the files of a folder to this machine until it is dropped.
struct Server {
    address: String,
    stop: Arc<AtomicBool>,
    asked: Arc<AtomicUsize>,
    failures: Arc<AtomicUsize>,
}

impl Server {
    fn of(folder: &Path) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let (stop, asked) = (Arc::new(AtomicBool::new(false)), Arc::default());
        let failures: Arc<AtomicUsize> = Arc::default();
        let server = Self { address, stop: stop.clone(), asked, failures };
        let (folder, asked) = (folder.to_path_buf(), server.asked.clone());
        let failures = server.failures.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                let (folder, asked, failures) = (folder.clone(), asked.clone(), failures.clone());
                thread::spawn(move || serve(stream, &folder, &asked, &failures));
            }
        });
        server
    }

    fn location(&self, name: &str) -> String {
        format!("{}/{name}", self.address)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.address.trim_start_matches("http://"));
    }
}

/// Answers requests of a connection: whole files, and pieces of them.
fn serve(stream: TcpStream, folder: &Path, asked: &AtomicUsize, failures: &AtomicUsize) {
    let mut lines = BufReader::new(stream.try_clone().unwrap());
    let mut stream = stream;
    loop {
        let (mut request, mut range) = (String::new(), None);
        if lines.read_line(&mut request).unwrap_or(0) == 0 {
            return;
        }
        loop {
            let mut line = String::new();
            if lines.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            let line = line.trim().to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            range = line.strip_prefix("range: bytes=").map(str::to_owned).or(range);
        }
        asked.fetch_add(1, Ordering::Relaxed);
        let mut words = request.split(' ');
        let (method, path) = (words.next().unwrap(), words.next().unwrap());
        let mut body = Vec::new();
        let found = fs::File::open(folder.join(path.trim_start_matches('/')))
            .and_then(|mut file| file.read_to_end(&mut body))
            .is_ok();
        let fails = failures.load(Ordering::Relaxed) > 0;
        let mut status = if found { "200 OK" } else { "404 Not Found" };
        if let (true, Some((start, end))) =
            (found, range.as_deref().and_then(|r| r.split_once('-')))
        {
            let size = body.len();
            let (start, end) = match (start.parse::<usize>(), end.parse::<usize>()) {
                (Ok(start), Ok(end)) => (start, (end + 1).min(size)),
                (Ok(start), Err(_)) => (start, size),
                (Err(_), Ok(last)) => (size - last, size),
                _ => (0, size),
            };
            body = body[start..end].to_vec();
            status = "206 Partial Content";
        }
        if fails {
            failures.fetch_sub(1, Ordering::Relaxed);
            (status, body) = ("503 Service Unavailable", Vec::new());
        }
        let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n", body.len());
        let body = if method == "HEAD" { &[][..] } else { &body[..] };
        if stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body)).is_err() {
            return;
        }
    }
}

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/era5")
}

#[test]
fn stores_on_the_web_are_those_of_folders() {
    let server = Server::of(&fixtures());
    for name in ["v2_lonlat.zarr", "v3_lonlat.zarr"] {
        let web = Store::open(&server.location(name)).unwrap();
        let folder = fixtures().join(name);
        let folder = Store::open(&format!("file://{}", folder.display())).unwrap();
        assert_eq!(web.times(), folder.times());
        for variable in web.all_variables() {
            for t in [0, 4] {
                assert_eq!(web.read(&variable, t).unwrap(), folder.read(&variable, t).unwrap());
            }
        }
        // What was read is kept.
        let asked = server.asked.load(Ordering::Relaxed);
        web.read(&web.all_variables()[0], 0).unwrap();
        assert_eq!(server.asked.load(Ordering::Relaxed), asked);
    }
    // A server that is overloaded for a moment is asked again.
    let web = Store::open(&server.location("v2_lonlat.zarr")).unwrap();
    server.failures.store(2, Ordering::Relaxed);
    assert!(web.read(&web.all_variables()[0], 0).is_ok());
    let error = |location: &str| Store::open(location).unwrap_err();
    assert_says(error(&server.location("none.zarr")), &["none.zarr: no Zarr store here"]);
    assert_says(
        error(&server.location("v3_sharded.zarr")),
        &["is not consolidated, and an address cannot be listed"],
    );
    assert_says(
        error("http://127.0.0.1:9/a.zarr"),
        &["`.zmetadata` cannot be read", "Check the address"],
    );
}

#[test]
fn a_part_of_a_store_is_fetched_from_a_server_and_interrupted_copies_go_on() {
    let scratch = Scratch::new();
    let weather = SynthConfig {
        latitudes: 6,
        longitudes: 8,
        steps: 60,
        step: 3 * HOUR,
        ..SynthConfig::default()
    };
    let synthetic = Synthetic::new(weather).unwrap();
    let origin = scratch.path().join("web/origin.zarr");
    synthetic.write(&origin, false, &mut silent).unwrap();
    let server = Server::of(&scratch.path().join("web"));
    let location = server.location("origin.zarr");
    let out = scratch.path().join("local/part.zarr");
    let config = FetchConfig {
        variables: ["geopotential.500", "2m_temperature"].map(|v| v.parse().unwrap()).to_vec(),
        from: synthetic.time(5),
        until: synthetic.time(50),
        stride: 6 * HOUR,
        masks: true,
    };
    // The chunk of times 24 to 31 is lost for a while.
    let (chunk, aside) = (origin.join("geopotential/3.0.0.0"), scratch.path().join("aside"));
    fs::rename(&chunk, &aside).unwrap();
    let error = fetch(&location, &out, &config, &mut silent).unwrap_err();
    assert_says(error, &["`geopotential.500` at", "geopotential/3.0.0.0"]);
    assert!(!out.exists());
    assert_eq!(names(out.parent().unwrap()), [".part.zarr.part"]);
    fs::rename(&aside, &chunk).unwrap();
    let before = server.asked.load(Ordering::Relaxed);
    let mut done = Vec::new();
    let local = fetch(&location, &out, &config, &mut |progress| done.push(progress.done)).unwrap();
    // Times 5, 7 … 49 are 23: three pieces of 8, of which the first is there.
    assert_eq!(done, [8, 16, 23]);
    assert!(server.asked.load(Ordering::Relaxed) - before < 40);
    assert_eq!(names(out.parent().unwrap()), ["part.zarr"]);
    let origin = Store::open(origin.to_str().unwrap()).unwrap();
    let times: Vec<usize> = (5..50).step_by(2).collect();
    assert_eq!(local.times(), times.iter().map(|&t| synthetic.time(t)).collect::<Vec<_>>());
    assert_eq!(local.all_variables().len(), 2);
    for variable in &config.variables {
        for (k, &t) in times.iter().enumerate() {
            assert_eq!(local.read(variable, k).unwrap(), origin.read(variable, t).unwrap());
        }
        local.check(variable).unwrap();
    }
    for name in ["land_sea_mask", "soil_type", "geopotential_at_surface"] {
        assert_eq!(local.constant(name).unwrap(), origin.constant(name).unwrap());
    }
    assert_eq!(local.attributes()["fetched_from"], location);
    assert_says(fetch(&location, &out, &config, &mut silent).unwrap_err(), &["exists already"]);
    let refused = |config: FetchConfig, words: &[&str]| {
        let out = scratch.path().join("other.zarr");
        assert_says(fetch(&location, &out, &config, &mut silent).unwrap_err(), words);
        assert!(!out.exists());
    };
    let (from, until) = (config.until + 10 * 86_400, config.until + 11 * 86_400);
    refused(
        FetchConfig { from, until, ..config.clone() },
        &["no time from", "the store has 2019-01-01"],
    );
    let variables = vec![Variable::surface("2m_temprature")];
    refused(FetchConfig { variables, ..config.clone() }, &["did you mean `2m_temperature`?"]);
}
