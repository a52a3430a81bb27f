//! The table and the page of all works.

use std::path::Path;

use bayesmesh_report::{
    Axis, Bar as PlotBar, Block, Cell, Color, Layer, Plot, Report, Section, Shape, Table,
};

use super::Outcome;
use super::race::{Bar, Figure, Work};

const COLORS: [Color; 6] =
    [Color::Blue, Color::Orange, Color::Green, Color::Purple, Color::Gold, Color::Grey];

/// Prints the table and writes `table.csv` and `report.html`.
pub fn report(works: &[Work], folder: &Path) -> Outcome<()> {
    let mut csv = String::from("work,what,value,unit,bar\n");
    let mut page = Report {
        title: "BayesMesh benchmarks".to_owned(),
        lead: "Contestants ran in alternation on one machine; the best of the rounds counts."
            .to_owned(),
        ..Report::default()
    };
    for work in works {
        println!("\n{}", work.title);
        for contestant in &work.contestants {
            let (name, best) = (&contestant.name, contestant.best);
            let mark = if work.is_champion(contestant) { "  its best" } else { "" };
            println!("  {name:<60} {best:10.4} {}{mark}", work.unit);
            csv += &format!("{:?},{name:?},{best},{},\n", work.title, work.unit);
        }
        for Figure { name, value, bar } in &work.figures {
            println!("  {name:<92} {value:10.3}  {bar}{}", verdict(*bar, *value));
            csv += &format!("{:?},{name:?},{value},,\"{bar}\"\n", work.title);
        }
        page.sections.push(section(work));
    }
    std::fs::write(folder.join("table.csv"), csv)?;
    std::fs::write(folder.join("report.html"), page.to_html())?;
    println!("\n{}\n{}", folder.join("table.csv").display(), folder.join("report.html").display());
    Ok(())
}

fn verdict(bar: Bar, value: f64) -> &'static str {
    if bar.is_met(value) { "" } else { ", missed" }
}

fn section(work: &Work) -> Section {
    let mut plot = Plot::new("Time", Axis::linear(""), Axis::linear("").unit(work.unit))
        .shape(Shape::Half)
        .caption("Shorter is better.");
    for (index, contestant) in work.contestants.iter().enumerate() {
        let left = index as f64;
        plot = plot.with(Layer::Bars {
            label: contestant.name.clone(),
            bars: vec![PlotBar { left, right: left + 0.8, height: contestant.best }],
            color: COLORS[index % COLORS.len()],
        });
    }
    let contestants = Table {
        header: ["", work.unit, ""].map(Into::into).into(),
        rows: work
            .contestants
            .iter()
            .map(|contestant| {
                let mark = if work.is_champion(contestant) { "its best" } else { "" };
                let time = Cell::number(contestant.best, 4);
                vec![Cell::from(contestant.name.as_str()), time, Cell::from(mark)]
            })
            .collect(),
        ..Table::default()
    };
    let figures = Table {
        header: ["", "measured", "held to"].map(Into::into).into(),
        rows: work
            .figures
            .iter()
            .map(|Figure { name, value, bar }| {
                let held = format!("{bar}{}", verdict(*bar, *value));
                vec![Cell::from(name.as_str()), Cell::number(*value, 3), Cell::from(held.as_str())]
            })
            .collect(),
        ..Table::default()
    };
    Section::new(work.title)
        .with(Block::Plot(plot))
        .with(Block::Table(contestants))
        .with(Block::Table(figures))
}
