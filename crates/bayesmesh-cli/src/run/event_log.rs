//! `events.jsonl`: what happened in a run, and when.

use std::path::Path;
use std::time::SystemTime;

use serde_json::{Value, json};

use super::line_file::LineFile;
use super::{RunError, clock};

/// Writes one JSON object per line: `{"time":…,"step":…,"kind":…,"fields":{…}}` with the time in
/// UTC as ISO 8601.
#[derive(Debug)]
pub struct EventLog {
    lines: LineFile,
}

impl EventLog {
    /// Begins a log. Refuses a file that exists.
    pub fn create(path: impl AsRef<Path>) -> Result<Self, RunError> {
        let lines = LineFile::create(path.as_ref())?;
        Ok(Self { lines })
    }

    /// Continues a log at a step: events of later steps and a line cut off by a kill are removed.
    /// A file that is missing is begun.
    pub fn resume(path: impl AsRef<Path>, step: u64) -> Result<Self, RunError> {
        let path = path.as_ref();
        let lines = LineFile::resume(path, |number, line| {
            let malformed =
                |problem: String| RunError::Malformed { path: path.into(), line: number, problem };
            let event: Value =
                serde_json::from_str(line).map_err(|error| malformed(error.to_string()))?;
            match event["step"].as_u64() {
                Some(at) => Ok(at <= step),
                None => Err(malformed("an event without a step".into())),
            }
        })?;
        Ok(Self { lines })
    }

    /// Appends an event of this moment; `fields` is a JSON object.
    pub fn append(&mut self, step: u64, kind: &str, fields: &Value) -> Result<(), RunError> {
        self.append_at(SystemTime::now(), step, kind, fields)
    }

    fn append_at(
        &mut self,
        time: SystemTime,
        step: u64,
        kind: &str,
        fields: &Value,
    ) -> Result<(), RunError> {
        let time = clock::iso_8601(time);
        let kind = json!(kind);
        // By hand, to have what every event has in front.
        self.lines.append(&format!(
            r#"{{"time":"{time}","step":{step},"kind":{kind},"fields":{fields}}}"#
        ))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;
    use bayesmesh_files::testing::Scratch;

    #[test]
    fn events_are_lines_of_json() {
        let scratch = Scratch::new();
        let path = scratch.path().join("events.jsonl");
        let mut log = EventLog::create(&path).unwrap();
        let time = UNIX_EPOCH + Duration::from_millis(1_767_225_599_001);
        let fields = json!({ "text": "two\nlines, \"quoted\"", "loss": 0.5 });
        log.append_at(time, 3, "a \"kind\"", &fields).unwrap();
        log.append(4, "end", &json!({})).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2);
        assert!(
            lines[0].starts_with(r#"{"time":"2025-12-31T23:59:59.001Z","step":3,"kind":"a \""#),
            "{text}"
        );
        let event: Value = serde_json::from_str(lines[0]).unwrap();
        assert_eq!(event["kind"], "a \"kind\"");
        assert_eq!(event["fields"], fields);
        let event: Value = serde_json::from_str(lines[1]).unwrap();
        assert!(event["time"].as_str().unwrap() > "2025");
        assert!(EventLog::create(&path).is_err());
    }

    #[test]
    fn a_resumed_log_forgets_later_and_torn_events() {
        let scratch = Scratch::new();
        let path = scratch.path().join("events.jsonl");
        let mut log = EventLog::resume(&path, 0).unwrap();
        for step in [1, 2, 3] {
            log.append(step, "größe", &json!({})).unwrap();
        }
        let whole = fs::read(&path).unwrap();
        let line = whole.len() / 3;
        for cut in 0..=whole.len() {
            fs::write(&path, &whole[..cut]).unwrap();
            let mut log = EventLog::resume(&path, 2).unwrap();
            let kept = &whole[..(cut / line).min(2) * line];
            assert_eq!(fs::read(&path).unwrap(), kept, "{cut}");
            log.append(9, "more", &json!({})).unwrap();
            assert!(fs::read(&path).unwrap().starts_with(kept));
        }
        assert_eq!(scratch.names(), ["events.jsonl"]);
    }

    #[test]
    fn foreign_lines_are_refused_and_left() {
        let scratch = Scratch::new();
        let path = scratch.path().join("events.jsonl");
        for line in ["{\"step\": 1", "{}", "[]", "{\"step\":-1}"] {
            let text = format!("{{\"step\":0}}\n{line}\n");
            fs::write(&path, &text).unwrap();
            let message = EventLog::resume(&path, 0).unwrap_err().to_string();
            assert!(message.contains("events.jsonl:2: "), "{message}");
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
    }
}
