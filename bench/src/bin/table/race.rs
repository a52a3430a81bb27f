//! Contestants that run in turn, and what comes of it.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::Outcome;

/// One way to do a piece of work: a command that prints numbers, of which one counts, smaller being
/// better.
pub struct Contestant {
    pub name: String,
    /// Whose configuration this is: ours are compared with the best of a team.
    pub team: Option<&'static str>,
    command: Vec<String>,
    /// Which number, from the end: the last one is 0.
    counts: usize,
    /// The best of the numbers that count, and the other numbers of that run.
    pub best: f64,
    pub others: Vec<f64>,
}

impl Contestant {
    fn new(name: String, program: &Path, arguments: &str) -> Self {
        let program = program.display().to_string();
        let words = arguments.split_whitespace().map(str::to_owned);
        Self {
            name,
            team: None,
            command: std::iter::once(program).chain(words).collect(),
            counts: 0,
            best: f64::INFINITY,
            others: Vec::new(),
        }
    }

    /// Where another number counts than the last.
    pub fn counting(self, counts: usize) -> Self {
        Self { counts, ..self }
    }

    /// Runs it once; its number.
    fn run(&mut self, through: &[String]) -> Outcome<f64> {
        let mut words = through.iter().chain(&self.command);
        let program = words.next().ok_or("no program")?;
        let output = Command::new(program).args(words).output()?;
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

/// Who takes part, and how.
pub struct Field {
    /// One that has the competition.
    pub python: Option<PathBuf>,
    /// The command that starts ranks that are processes.
    pub mpirun: Option<String>,
    /// Words before every command, such as `taskset -c 0,1`.
    pub through: Vec<String>,
    /// The folder of our programs.
    pub programs: PathBuf,
    pub rounds: usize,
}

impl Field {
    pub fn ours(&self, name: &str, program: &str, arguments: &str) -> Contestant {
        Contestant::new(name.to_owned(), &self.programs.join(program), arguments)
    }

    /// Scripts of `bench/peers`, where there is a Python for them: the name and the command of each
    /// configuration, and a flag for all, which may be empty.
    pub fn team(
        &self,
        team: &'static str,
        configurations: &[(&str, &str)],
        flag: &str,
    ) -> Vec<Contestant> {
        let Some(python) = &self.python else { return Vec::new() };
        let contestant = |(name, command): &(&str, &str)| {
            let command = command.replace("torchrun", "-m torch.distributed.run");
            let command = format!("{command} {flag}");
            let contestant = Contestant::new(format!("{team}, {name}"), python, &command);
            Contestant { team: Some(team), ..contestant }
        };
        configurations.iter().map(contestant).collect()
    }

    /// One of our programs on so many processes.
    pub fn job(&self, name: &str, ranks: usize, program: &str, arguments: &str) -> Contestant {
        let mpirun = self.mpirun.as_deref().unwrap_or("mpirun");
        let mut words = mpirun.split_whitespace();
        let launcher = Path::new(words.next().unwrap_or_default());
        let options: String = words.map(|word| format!("{word} ")).collect();
        let program = self.programs.join(program);
        let arguments = format!("{options}-n {ranks} {} {arguments}", program.display());
        Contestant::new(name.to_owned(), launcher, &arguments)
    }

    /// Runs the contestants in turn.
    pub fn compete(&self, work: &str, contestants: &mut [Contestant]) -> Outcome<()> {
        for round in 1..=self.rounds {
            eprintln!("{work}, round {round} of {}", self.rounds);
            for contestant in &mut *contestants {
                contestant.run(&self.through)?;
            }
        }
        Ok(())
    }

    /// The most of several runs of something that bounds from above: a bound must not be an unlucky
    /// run.
    pub fn most(&self, mut contestant: Contestant) -> Outcome<f64> {
        let mut most = 0.0f64;
        for _ in 0..self.rounds {
            most = most.max(contestant.run(&self.through)?);
        }
        Ok(most)
    }
}

/// What a figure has to be.
#[derive(Clone, Copy)]
pub enum Bar {
    None,
    AtLeast(f64),
    AtMost(f64),
}

impl Bar {
    pub fn is_met(self, value: f64) -> bool {
        match self {
            Self::None => true,
            Self::AtLeast(bar) => value >= bar,
            Self::AtMost(bar) => value <= bar,
        }
    }
}

impl std::fmt::Display for Bar {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        match self {
            Self::None => Ok(()),
            Self::AtLeast(bar) => write!(f, "≥ {bar}"),
            Self::AtMost(bar) => write!(f, "≤ {bar}"),
        }
    }
}

/// A figure, and what the project holds it to.
pub struct Figure {
    pub name: String,
    pub value: f64,
    pub bar: Bar,
}

impl Figure {
    pub fn new(name: impl Into<String>, value: f64, bar: Bar) -> Self {
        Self { name: name.into(), value, bar }
    }
}

/// A piece of work: what it is, how all did, and the figures that follow.
pub struct Work {
    pub title: &'static str,
    pub unit: &'static str,
    pub contestants: Vec<Contestant>,
    pub figures: Vec<Figure>,
}

impl Work {
    /// What the contestants did, without figures yet.
    pub fn race(
        field: &Field,
        title: &'static str,
        unit: &'static str,
        mut contestants: Vec<Contestant>,
    ) -> Outcome<Self> {
        field.compete(title, &mut contestants)?;
        Ok(Self { title, unit, contestants, figures: Vec::new() })
    }

    pub fn add(&mut self, name: impl Into<String>, value: f64, bar: Bar) {
        self.figures.push(Figure::new(name, value, bar));
    }

    /// The contestant of this name.
    ///
    /// # Panics
    ///
    /// If there is none.
    pub fn of(&self, name: &str) -> &Contestant {
        self.contestants.iter().find(|c| c.name == name).expect("it took part")
    }

    pub fn best(&self, name: &str) -> f64 {
        self.of(name).best
    }

    /// The best configuration of a team, where it took part.
    pub fn champion(&self, team: &str) -> Option<&Contestant> {
        let members = self.contestants.iter().filter(|c| c.team == Some(team));
        members.min_by(|a, b| a.best.total_cmp(&b.best))
    }

    /// Whether a contestant is the best of several configurations of its team.
    pub fn is_champion(&self, contestant: &Contestant) -> bool {
        let Some(team) = contestant.team else { return false };
        let members = self.contestants.iter().filter(|c| c.team == Some(team)).count();
        members > 1 && self.champion(team).is_some_and(|best| best.name == contestant.name)
    }

    /// Adds our share of the time of the best of a team.
    pub fn share(&mut self, ours: &str, team: &str, bar: Bar) {
        if let Some(theirs) = self.champion(team) {
            let name = format!("{ours}: share of the time of {}", theirs.name);
            self.add(name, self.best(ours) / theirs.best, bar);
        }
    }

    /// Adds how many times as fast as the best of a team we are.
    pub fn speed(&mut self, ours: &str, team: &str, bar: Bar) {
        if let Some(theirs) = self.champion(team) {
            let name = format!("{ours}: times as fast as {}", theirs.name);
            self.add(name, theirs.best / self.best(ours), bar);
        }
    }
}
