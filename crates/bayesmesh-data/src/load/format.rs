//! The known file formats, recognised by their header.

use std::fmt;
use std::path::Path;

use bayesmesh_files::shown;

use super::error::LoadError;
use super::number::Decimal;

/// Where a file comes from. Column names are compared without regard to case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Open Power System Data, `time_series_15min_singleindex.csv` and its hourly sibling: a column
    /// `utc_timestamp` and `DE_load_actual_entsoe_transparency` (or another `DE_load_actual_…`, or
    /// the only `…_load_actual_…` there is). MW, UTC.
    OpenPowerSystemData,
    /// ENTSO-E Transparency Platform: `Time (UTC)`, `Time (CET/CEST)`, or `MTU (…)` in newer
    /// exports, with `01.01.2019 00:00 - 01.01.2019 00:15`, and `Actual Total Load [MW] - …`. MW.
    EntsoeTransparency,
    /// SMARD, separated by semicolons: `Datum von;Datum bis;…`, `Datum;Anfang;Ende;…`,
    /// `Datum;Uhrzeit;…`, `Start date;End date;…` or `Date;Start;End;…`, and
    /// `Gesamt (Netzlast) [MWh] …`, `Netzlast [MWh] …`, `Total (grid load) [MWh] …` or
    /// `Grid load [MWh] …`, in older files without the blank before the unit. MWh per step, German
    /// local time; `12.345,67` or `12,345.67`, as the column shows.
    Smard,
    /// `de.csv` of the Kaggle data set *western-europe-power-consumption*: `start,end,load`. MW.
    StartEndLoad,
    /// `timestamp,load`; the time also as `time`, `datetime` or `utc_timestamp`, the load also as
    /// `value` or `load_mw`. ISO 8601, without an offset taken as UTC. MW.
    Plain,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OpenPowerSystemData => "Open Power System Data",
            Self::EntsoeTransparency => "ENTSO-E Transparency export",
            Self::Smard => "SMARD export",
            Self::StartEndLoad => "start,end,load",
            Self::Plain => "timestamp,load",
        })
    }
}

/// For the error about an unknown header.
pub(super) const KNOWN_FORMATS: &str = "  \
    Open Power System Data   utc_timestamp, DE_load_actual_entsoe_transparency
  ENTSO-E Transparency     Time (UTC) or Time (CET/CEST), Actual Total Load [MW] - …
  SMARD                    Datum von or Start date, Gesamt (Netzlast) or Total (grid load) [MWh]
  Kaggle de.csv            start, end, load
  plain                    timestamp (time, datetime, utc_timestamp), load (value, load_mw)";

/// Which clock a file's times are read from when they carry no offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Clock {
    /// Stated to be UTC.
    Utc,
    /// German (Central European) local time.
    Berlin,
    /// Not stated; taken as UTC.
    Unstated,
}

/// How the times of a file are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TimeStyle {
    /// ISO 8601.
    Iso,
    /// `01.01.2019 00:00 - 01.01.2019 00:15`.
    Interval,
    /// `01.01.2019 00:00` or `Jan 1, 2019 12:00 AM`; perhaps date and time in two columns.
    Clock,
}

/// Where in a row the time and the load are, and how to read them.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Layout {
    pub format: Format,
    pub time: usize,
    /// The column of the time of day when `time` is only the date.
    pub time_of_day: Option<usize>,
    pub load: usize,
    /// The column that names the area, if any.
    pub area: Option<usize>,
    pub clock: Clock,
    pub style: TimeStyle,
    /// Whether loads are energies per step (MWh) instead of powers (MW).
    pub energy: bool,
    /// How numbers are written unless the column itself shows otherwise.
    pub decimal: Decimal,
}

impl Layout {
    /// The layout of the file with this header.
    pub(super) fn of_header(header: &[String], file: &Path) -> Result<Self, LoadError> {
        let names: Vec<String> = header.iter().map(|h| h.trim().to_lowercase()).collect();
        for recognise in [open_power_system_data, entsoe, smard] {
            match recognise(&names) {
                Recognised::Yes(layout) => return Ok(layout),
                Recognised::But(problem) => {
                    let file = file.to_path_buf();
                    return Err(LoadError::Header { file, problem });
                }
                Recognised::No => {}
            }
        }
        start_end_load(&names).or_else(|| plain(&names)).ok_or_else(|| LoadError::UnknownHeader {
            file: file.to_path_buf(),
            header: shown(header.join(",")),
        })
    }

    fn iso(format: Format, time: usize, load: usize) -> Self {
        Self {
            format,
            time,
            time_of_day: None,
            load,
            area: None,
            clock: Clock::Unstated,
            style: TimeStyle::Iso,
            energy: false,
            decimal: Decimal::Point,
        }
    }
}

enum Recognised {
    Yes(Layout),
    /// The format is clear, but something is missing; the text says what to do.
    But(String),
    No,
}

fn find(names: &[String], wanted: impl Fn(&str) -> bool) -> Option<usize> {
    names.iter().position(|name| wanted(name))
}

fn open_power_system_data(names: &[String]) -> Recognised {
    let Some(time) = find(names, |n| n == "utc_timestamp") else {
        return Recognised::No;
    };
    let loads: Vec<usize> =
        (0..names.len()).filter(|&i| names[i].contains("_load_actual_")).collect();
    let german = loads
        .iter()
        .find(|&&i| names[i] == "de_load_actual_entsoe_transparency")
        .or_else(|| loads.iter().find(|&&i| names[i].starts_with("de_load_actual_")));
    let load = match (german, loads.as_slice()) {
        (Some(&load), _) | (None, &[load]) => load,
        (None, []) => return Recognised::No,
        (None, _) => {
            let found: Vec<&str> = loads.iter().map(|&i| names[i].as_str()).collect();
            return Recognised::But(format!(
                "no column DE_load_actual_entsoe_transparency, but several others ({}). Keep \
                 utc_timestamp and the one you want",
                shown(found.join(", "))
            ));
        }
    };
    let mut layout = Layout::iso(Format::OpenPowerSystemData, time, load);
    layout.clock = Clock::Utc;
    Recognised::Yes(layout)
}

fn entsoe(names: &[String]) -> Recognised {
    let Some(load) = find(names, |n| n.starts_with("actual total load")) else {
        return Recognised::No;
    };
    let Some(time) = find(names, |n| n.starts_with("time (") || n.starts_with("mtu")) else {
        return Recognised::No;
    };
    let clock = match names[time].split_once('(').map(|(_, zone)| zone.trim_end_matches(')')) {
        Some("utc") => Clock::Utc,
        Some("cet/cest") => Clock::Berlin,
        _ => {
            return Recognised::But(format!(
                "the time column `{}` names neither UTC nor CET/CEST. Export in UTC",
                shown(&names[time])
            ));
        }
    };
    let mut layout = Layout::iso(Format::EntsoeTransparency, time, load);
    layout.clock = clock;
    layout.style = TimeStyle::Interval;
    layout.area = find(names, |n| n == "area");
    Recognised::Yes(layout)
}

fn smard(names: &[String]) -> Recognised {
    let is = |index: usize, wanted: &[&str]| {
        names.get(index).is_some_and(|name| wanted.contains(&name.as_str()))
    };
    let combined = is(0, &["datum von", "start date", "date from"]);
    let separate =
        is(0, &["datum", "date"]) && is(1, &["anfang", "uhrzeit", "start", "time", "time of day"]);
    if !combined && !separate {
        return Recognised::No;
    }
    // Older exports have no blank before the unit, and the oldest call the load just the total, as
    // files of generation do theirs.
    let compact: Vec<String> = names.iter().map(|name| name.replace(' ', "")).collect();
    let begins = ["gesamt(netzlast)[", "netzlast[", "total(gridload)[", "gridload["];
    let named = find(&compact, |n| begins.iter().any(|b| n.starts_with(b)));
    let total = || {
        let generation = compact.iter().any(|n| n.starts_with("photovoltai"));
        find(&compact, |n| !generation && matches!(n, "gesamt[mwh]" | "total[mwh]"))
    };
    let Some(load) = named.or_else(total) else {
        return Recognised::But(format!(
            "a SMARD export without a column `Gesamt (Netzlast) [MWh]` or `Total (grid load) \
             [MWh]` (found {}). Export `Realisierter Stromverbrauch` (Actual consumption)",
            shown(names.join(", "))
        ));
    };
    let german = names[0].starts_with("datum");
    let mut layout = Layout::iso(Format::Smard, 0, load);
    layout.time_of_day = separate.then_some(1);
    layout.clock = Clock::Berlin;
    layout.style = TimeStyle::Clock;
    layout.energy = names[load].contains("[mwh]");
    layout.decimal = if german { Decimal::Comma } else { Decimal::Point };
    if !layout.energy && !names[load].contains("[mw]") {
        return Recognised::But(format!(
            "the unit of `{}` is neither MWh nor MW. Export in MWh",
            shown(&names[load])
        ));
    }
    Recognised::Yes(layout)
}

fn start_end_load(names: &[String]) -> Option<Layout> {
    let time = find(names, |n| n == "start")?;
    find(names, |n| n == "end")?;
    let load = find(names, |n| n == "load")?;
    Some(Layout::iso(Format::StartEndLoad, time, load))
}

fn plain(names: &[String]) -> Option<Layout> {
    let any =
        |wanted: &[&str]| wanted.iter().find_map(|&wanted| find(names, |name| name == wanted));
    let time = any(&["timestamp", "utc_timestamp", "datetime", "time"])?;
    let load = any(&["load", "load_mw", "value"])?;
    let mut layout = Layout::iso(Format::Plain, time, load);
    if names[time] == "utc_timestamp" {
        layout.clock = Clock::Utc;
    }
    Some(layout)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(header: &str) -> Result<Layout, LoadError> {
        let separator = if header.contains(';') { ';' } else { ',' };
        let names: Vec<String> = header.split(separator).map(str::to_owned).collect();
        Layout::of_header(&names, Path::new("load.csv"))
    }

    #[track_caller]
    fn columns(header: &str) -> (Format, usize, Option<usize>, usize) {
        let layout = layout(header).expect(header);
        (layout.format, layout.time, layout.time_of_day, layout.load)
    }

    #[test]
    fn headers_of_every_format() {
        assert_eq!(
            columns(
                "utc_timestamp,cet_cest_timestamp,AT_load_actual_entsoe_transparency,\
                     DE_load_forecast_entsoe_transparency,DE_load_actual_entsoe_transparency"
            ),
            (Format::OpenPowerSystemData, 0, None, 4)
        );
        assert_eq!(
            columns(
                "Time (UTC),Day-ahead Total Load Forecast [MW] - Germany (DE),\
                     Actual Total Load [MW] - Germany (DE)"
            ),
            (Format::EntsoeTransparency, 0, None, 2)
        );
        assert_eq!(
            columns(
                "MTU (CET/CEST),Area,Actual Total Load (MW),Day-ahead Total Load Forecast (MW)"
            ),
            (Format::EntsoeTransparency, 0, None, 2)
        );
        assert_eq!(
            columns(
                "Datum von;Datum bis;Netzlast inkl. Pumpspeicher [MWh] Originalauflösungen;\
                     Netzlast [MWh] Originalauflösungen"
            ),
            (Format::Smard, 0, None, 3)
        );
        assert_eq!(
            columns("Datum;Anfang;Ende;Gesamt (Netzlast) [MWh] Originalauflösungen"),
            (Format::Smard, 0, Some(1), 3)
        );
        assert_eq!(
            columns("Start date;End date;Total (grid load) [MWh] Original resolutions"),
            (Format::Smard, 0, None, 2)
        );
        assert_eq!(
            columns("Date;Time of day;Residual load[MWh];Total (grid load)[MWh]"),
            (Format::Smard, 0, Some(1), 3)
        );
        assert_eq!(columns("Datum;Uhrzeit;Gesamt[MWh]"), (Format::Smard, 0, Some(1), 2));
        assert_eq!(columns("start,end,load"), (Format::StartEndLoad, 0, None, 2));
        assert_eq!(columns("Value,DateTime"), (Format::Plain, 1, None, 0));
        assert_eq!(columns("utc_timestamp,load_mw"), (Format::Plain, 0, None, 1));
    }

    #[test]
    fn what_is_missing_is_said() {
        let text = |header: &str| layout(header).unwrap_err().to_string();
        assert!(text("a,b,c").contains("a,b,c"));
        assert!(text("a,b,c").contains("SMARD"));
        assert!(text("Time (EET/EEST),Actual Total Load [MW] - X").contains("Export in UTC"));
        assert!(text("Datum von;Datum bis;Biomasse [MWh]").contains("Netzlast"));
        assert!(text("Datum;Uhrzeit;Gesamt[MWh];Photovoltaik[MWh]").contains("Stromverbrauch"));
        assert!(text("Datum von;Datum bis;Netzlast [GWh]").contains("Export in MWh"));
        let two = "utc_timestamp,AT_load_actual_x,FR_load_actual_x";
        assert!(text(two).contains("at_load_actual_x, fr_load_actual_x"));
    }
}
