//! Starts jobs under `mpirun` and waits for them.

use std::env;
use std::io::Read;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How a job ended.
pub struct Ended {
    /// `None` where it was killed.
    pub code: Option<i32>,
    pub took: Duration,
    pub output: String,
    pub messages: String,
}

impl Ended {
    pub fn success(&self) -> bool {
        self.code == Some(0)
    }
}

/// An error with everything the job said, unless the condition holds.
pub fn check(ended: &Ended, condition: bool, complaint: &str) -> Result<(), String> {
    let Ended { code, took, output, messages } = ended;
    match condition {
        true => Ok(()),
        false => Err(format!(
            "{complaint}; code {code:?}, {took:?}\n--- output\n{output}--- messages\n{messages}"
        )),
    }
}

/// The command that starts ranks, of the library this program is linked with.
pub fn launcher(library: &str) -> Option<Vec<String>> {
    if let Ok(command) = env::var("BAYESMESH_MPIRUN") {
        return Some(command.split_whitespace().map(str::to_owned).collect());
    }
    let (own, family, options) = match library.starts_with("Open MPI") {
        true => ("mpirun.openmpi", "Open", vec!["--oversubscribe"]),
        false => ("mpirun.mpich", "HYDRA", vec![]),
    };
    let version = |program: &str| {
        let output = Command::new(program).arg("--version").output().ok()?;
        Some(String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let fits = |program: &&str| version(program).is_some_and(|text| text.contains(family));
    let program = [own, "mpirun"].into_iter().find(fits)?;
    Some([program].into_iter().chain(options).map(str::to_owned).collect())
}

/// A launcher of ranks of which only one thread at a time may communicate.
pub fn in_turns(launcher: &[String]) -> Vec<String> {
    let words = ["env", "BAYESMESH_MPI_SERIALIZED=1"].map(str::to_owned);
    [&words[..], launcher].concat()
}

/// How the ranks of a job are spread over nodes.
pub struct Nodes {
    /// Ranks of each.
    pub sizes: Vec<usize>,
    /// Whether ranks that follow each other are on different nodes, as far as that goes.
    pub dealt: bool,
}

impl Nodes {
    pub fn ranks(&self) -> usize {
        self.sizes.iter().sum()
    }

    /// The command that starts ranks on these nodes, which are this machine under other names;
    /// `None` where that cannot be done.
    pub fn launcher(&self, library: &str) -> Option<Vec<String>> {
        let mut launcher = launcher(library)?;
        if env::var_os("BAYESMESH_MPIRUN").is_some() {
            return None;
        }
        if !library.starts_with("Open MPI") {
            // MPICH can pretend by itself, and then deals ranks out to nodes.
            let nodes = format!("MPIR_CVAR_NUM_CLIQUES={}", self.sizes.len());
            return self.dealt.then(|| [vec!["env".to_owned(), nodes], launcher].concat());
        }
        let agent = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/node.sh");
        let probe = Command::new(agent).args(["node", "true"]).stderr(Stdio::null()).status();
        if !probe.is_ok_and(|status| status.success()) {
            // Nothing may land untested.
            assert!(env::var_os("CI").is_none(), "{agent} cannot make a node here");
            return None;
        }
        let host = |(number, size): (usize, &usize)| format!("node{number}:{size}");
        let hosts: Vec<String> = self.sizes.iter().enumerate().map(host).collect();
        let hosts = hosts.join(",");
        let options = ["--host", &hosts, "--mca", "plm_rsh_agent", agent];
        let network = ["--mca", "btl_tcp_if_include", "lo", "--mca", "oob_tcp_if_include", "lo"];
        let order = ["--map-by", if self.dealt { "node" } else { "slot" }];
        launcher
            .extend(options.iter().chain(&network).chain(&order).map(|word| (*word).to_owned()));
        // What `command` sets for one node does not work between these.
        let alone = ["env", "-u", "PMIX_MCA_gds"].map(str::to_owned);
        Some([&alone[..], &launcher].concat())
    }
}

/// A command that starts so many ranks of what is added to it.
pub fn command(launcher: &[String], ranks: usize) -> Command {
    let mut command = Command::new(&launcher[0]);
    command.args(&launcher[1..]).args(["-n", &ranks.to_string()]);
    // Root is what one is in a container.
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    // By default PMIx shares memory with the ranks, and a rank that is killed while it starts may
    // take a lock there with it: then mpirun waits for it at its own end, for ever.
    command.env("PMIX_MCA_gds", "hash");
    command.env_remove("RUST_BACKTRACE");
    command
}

/// Runs a job of this program and waits for it, `limit` at most.
pub fn job(launcher: &[String], ranks: usize, arguments: &[&str], limit: Duration) -> Ended {
    let mut command = command(launcher, ranks);
    command.arg(env::current_exe().expect("a program knows its place")).arg("rank");
    run(command.args(arguments), limit)
}

/// Runs a command and waits for it, `limit` at most.
pub fn run(command: &mut Command, limit: Duration) -> Ended {
    let start = Instant::now();
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the launcher starts");
    fn reader(mut from: impl Read + Send + 'static) -> thread::JoinHandle<String> {
        thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = from.read_to_end(&mut bytes);
            String::from_utf8_lossy(&bytes).into_owned()
        })
    }
    let output = reader(child.stdout.take().expect("piped"));
    let messages = reader(child.stderr.take().expect("piped"));
    let status = loop {
        match child.try_wait().expect("a child can be waited for") {
            Some(status) => break Some(status),
            None if start.elapsed() > limit => {
                // The launcher ends its ranks when it is asked to.
                let _ = Command::new("kill").arg(child.id().to_string()).status();
                thread::sleep(Duration::from_secs(2));
                let _ = child.kill();
                let _ = child.wait();
                break None;
            }
            None => thread::sleep(Duration::from_millis(10)),
        }
    };
    let join = |reader: thread::JoinHandle<String>| reader.join().unwrap_or_default();
    Ended {
        code: status.and_then(|status| status.code()),
        took: start.elapsed(),
        output: join(output),
        messages: join(messages),
    }
}
