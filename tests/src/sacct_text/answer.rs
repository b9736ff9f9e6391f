//! Jobs that are asked for by number: with fewer fields, or as JSON.

use serde_json::{Value, json};
use steward_common::slurm::sacct::{DELIMITER, Field, Layout};

/// The rows of a run, each cut into its fields. A name may hold a delimiter; no other text does.
fn cut<'a>(layout: &Layout, run: &'a str) -> Vec<Vec<&'a str>> {
    let id = run.split(char::from(DELIMITER)).next().unwrap_or_default();
    // A row ends where one of a step begins: a name may hold line ends, too.
    let begin = format!("\n{id}.");
    let mut starts = vec![0];
    starts.extend(run.match_indices(&begin).map(|(at, _)| at + 1));
    let ends = starts.iter().skip(1).map(|start| start - 1).chain([run.len() - 1]);
    starts.iter().zip(ends).map(|(start, end)| fields(layout, &run[*start..end])).collect()
}

fn fields<'a>(layout: &Layout, row: &'a str) -> Vec<&'a str> {
    let mut fields = Vec::new();
    let mut left = row.split(char::from(DELIMITER)).count() - layout.width();
    let name = layout.place(Field::JobName);
    let mut start = 0;
    for (end, _) in row.match_indices(char::from(DELIMITER)).chain([(row.len(), "")]) {
        if Some(fields.len()) == name && left > 0 {
            left -= 1;
            continue;
        }
        fields.push(&row[start..end]);
        start = end + 1;
    }
    fields
}

/// The runs, of the layout `layout`, with the fields of another.
#[must_use]
pub fn rows(layout: &Layout, asked: &Layout, runs: &[Vec<u8>]) -> Vec<u8> {
    if layout == asked {
        return runs.concat();
    }
    let mut text = String::new();
    for run in runs {
        for row in cut(layout, &String::from_utf8_lossy(run)) {
            for field in asked.fields() {
                text += layout.place(*field).and_then(|place| row.get(place)).unwrap_or(&"");
                text.push(char::from(DELIMITER));
            }
            text += row.last().unwrap_or(&"");
            text.push('\n');
        }
    }
    text.into_bytes()
}

/// The runs as JSON, as far as anything of it is read.
#[must_use]
pub fn json(layout: &Layout, runs: &[Vec<u8>]) -> Value {
    let jobs: Vec<Value> = runs
        .iter()
        .map(|run| {
            let text = String::from_utf8_lossy(run);
            let rows = cut(layout, &text);
            let of = |row: usize, field| rows[row][layout.place(field).expect("a field")];
            // Without what stands behind a time.
            let digits = |text: &'_ str| -> Option<u64> {
                text.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
            };
            let number = |field| digits(of(0, field));
            let steps: Vec<Value> = (1..rows.len())
                .map(|row| json!({ "step": { "name": of(row, Field::JobName) } }))
                .collect();
            json!({
                "job_id": number(Field::JobIdRaw),
                "name": of(0, Field::JobName),
                "time": { "submission": number(Field::Submit) },
                "comment": {
                    "administrator": of(0, Field::AdminComment),
                    "job": of(0, Field::Comment),
                },
                "constraints": of(0, Field::Constraints),
                "working_directory": of(0, Field::WorkDir),
                "submit_line": of(0, Field::SubmitLine),
                "steps": steps,
            })
        })
        .collect();
    json!({ "jobs": jobs })
}
