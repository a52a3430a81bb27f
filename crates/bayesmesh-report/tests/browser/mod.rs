//! Opens a report in headless Chromium and measures it. Other crates use it by `#[path]`.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use std::{env, io, process, thread};

/// What the browser found in a page of one width.
#[derive(Debug, Clone, Default)]
#[allow(dead_code, reason = "not every test that uses this module reads every number")]
pub struct Layout {
    /// Width of the page in pixels.
    pub width: u32,
    /// Charts that are shown.
    pub charts: usize,
    /// Lines, bands, bars and dots drawn in them.
    pub marks: usize,
    /// Tables that are shown.
    pub tables: usize,
    /// Maps that are shown: a name, and a number that tells their pictures apart.
    pub maps: Vec<String>,
    /// What is said to be shown in the maps.
    pub states: Vec<String>,
    /// Sliders and selectors that are shown.
    pub controls: usize,
    /// What is wrong, in words.
    pub problems: Vec<String>,
}

/// What is done with a page before it is measured.
#[derive(Debug, Clone, Copy, Default)]
pub struct Reader<'a> {
    /// Whether the reader prefers dark colours.
    pub dark: bool,
    /// A script run with the document of the page as `page`.
    pub action: &'a str,
}

/// Lays out the page `html` at each of `widths` and measures it; `None` if there is no Chromium,
/// which is the program in the environment variable `CHROMIUM` or a usual name on the `PATH`.
///
/// Problems are: anything wider than the page, a chart or table box or map outside of it, a chart
/// without size or marks, text that overlaps other text of a chart or is cut off by its edge, an
/// image that does not load, text of maps that overlaps or is hard to read.
///
/// # Panics
/// If Chromium does not run or gives no answer.
#[allow(dead_code, reason = "not every test that uses this module uses both functions")]
pub fn layouts(html: &str, widths: &[u32]) -> Option<Vec<Layout>> {
    layouts_for(Reader::default(), html, widths)
}

/// [`layouts`] as `reader` gets them.
///
/// # Panics
/// If Chromium does not run or gives no answer.
pub fn layouts_for(reader: Reader, html: &str, widths: &[u32]) -> Option<Vec<Layout>> {
    let chromium = find_chromium()?;
    let folder = Folder::new();
    let wrapper = folder.0.join("wrapper.html");
    fs::write(&wrapper, wrapper_page(html, widths, reader.action))
        .expect("the wrapper page is written");
    let dom = run(&chromium, reader.dark, &folder.0, &wrapper);
    let (_, rest) = dom.split_once("<pre id=\"result\">").expect("the page has a result");
    let (result, _) = rest.split_once("</pre>").expect("the result ends");
    let layouts = parse(result);
    assert_eq!(layouts.len(), widths.len(), "an answer for each width, not {result:?}");
    Some(layouts)
}

/// The page with a frame for each width and the script that measures them.
fn wrapper_page(html: &str, widths: &[u32], action: &str) -> String {
    let source = html.replace('&', "&amp;").replace('"', "&quot;");
    let frame = |width: &u32| {
        format!(
            "<iframe style=\"width:{width}px;height:900px;border:0\" srcdoc=\"{source}\"></iframe>"
        )
    };
    let frames: String = widths.iter().map(frame).collect();
    format!(
        "<!doctype html><body>{frames}<pre id=\"result\"></pre>\
         <script>const act = (page) => {{ {action} }};\n{}</script></body>",
        include_str!("measure.js")
    )
}

/// Reads lines of `name value`, where `width` begins the next layout.
fn parse(result: &str) -> Vec<Layout> {
    let mut layouts: Vec<Layout> = Vec::new();
    for line in result.lines() {
        let (name, value) = line.split_once(' ').unwrap_or((line, ""));
        let number = || value.parse().expect("a number");
        if name == "width" {
            layouts.push(Layout { width: value.parse().expect("a width"), ..Layout::default() });
        }
        let Some(layout) = layouts.last_mut() else {
            continue;
        };
        match name {
            "charts" => layout.charts = number(),
            "marks" => layout.marks = number(),
            "tables" => layout.tables = number(),
            "controls" => layout.controls = number(),
            "map" => layout.maps.push(value.to_owned()),
            "state" => layout.states.push(value.to_owned()),
            "problem" => layout.problems.push(value.to_owned()),
            _ => {}
        }
    }
    layouts
}

fn find_chromium() -> Option<PathBuf> {
    if let Some(program) = env::var_os("CHROMIUM").filter(|program| !program.is_empty()) {
        return Some(program.into());
    }
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let folders: Vec<PathBuf> = env::split_paths(&env::var_os("PATH")?).collect();
    let candidates = names.iter().flat_map(|name| folders.iter().map(move |f| f.join(name)));
    candidates.into_iter().find(|program| program.is_file())
}

/// The document of `page` after its scripts have run.
fn run(chromium: &Path, dark: bool, folder: &Path, page: &Path) -> String {
    let mut data_dir = OsString::from("--user-data-dir=");
    data_dir.push(folder.join("profile"));
    let output = folder.join("dom.html");
    let log = folder.join("log.txt");
    // Chromium numbers its colour schemes: 0 is dark, 1 is light.
    let scheme = format!("--blink-settings=preferredColorScheme={}", u8::from(!dark));
    let mut child = Command::new(chromium)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .args(["--disable-dev-shm-usage", "--window-size=1600,1000", "--dump-dom"])
        .arg(scheme)
        .arg(data_dir)
        .arg(page)
        .stdin(Stdio::null())
        .stdout(File::create(&output).expect("a file for the document"))
        .stderr(File::create(&log).expect("a file for the log"))
        .spawn()
        .unwrap_or_else(|error| panic!("{} does not start: {error}", chromium.display()));
    let status = wait(&mut child).expect("the state of Chromium");
    let dom = String::from_utf8_lossy(&fs::read(&output).expect("the document")).into_owned();
    assert!(
        status.is_some_and(|status| status.success()) && dom.contains("</html>"),
        "Chromium failed ({status:?}):\n{}",
        fs::read_to_string(&log).unwrap_or_default()
    );
    dom
}

/// Waits for Chromium; one that hangs is ended after two minutes, so that the test fails with its
/// log in place of never ending.
fn wait(child: &mut process::Child) -> io::Result<Option<ExitStatus>> {
    for _ in 0..1200 {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        thread::sleep(Duration::from_millis(100));
    }
    child.kill()?;
    child.wait()?;
    Ok(None)
}

/// A temporary folder that is removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = env::temp_dir().join(format!("bayesmesh-browser-{}-{count}", process::id()));
        fs::create_dir_all(&path).expect("a temporary folder");
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Chromium's helpers may still write for a moment; what they leave is not worth a failure.
        let _ = fs::remove_dir_all(&self.0);
    }
}
