use parquet::arrow::ArrowWriter;
use steward_common::slurm::sacct::{Field, Row, row};
use tempfile::NamedTempFile;

use super::super::raw::{RawWriter, properties};
use super::super::raw_filter::filter;
use super::super::shelf::Directory;
use super::*;

/// The rows of a job that began then.
fn rows_of(layout: &Layout, start: &str) -> String {
    let row = |id: &str| {
        let field = |field: &Field| match field {
            Field::JobIdRaw | Field::JobId => id.to_owned(),
            Field::Submit | Field::End => "1792195205".to_owned(),
            Field::Start => start.to_owned(),
            Field::TotalCpu => "00:01.250".to_owned(),
            Field::JobName => "a name".to_owned(),
            _ => String::new(),
        };
        let fields: Vec<String> = layout.fields().iter().map(field).collect();
        format!("{}\x1f{id}\n", fields.join("\x1f"))
    };
    row("70") + &row("70.batch")
}

/// A file with this run.
fn file(layout: &Layout, text: &str) -> NamedTempFile {
    let names = layout.names();
    let time = Timestamp::new(1_792_195_205);
    let mut writer =
        RawWriter::new(NamedTempFile::new().unwrap(), 1, &names, Timestamp::new(5)).unwrap();
    let mut ends: Vec<(usize, Vec<u32>)> = Vec::new();
    let mut start = 0;
    for line in text.lines() {
        let at = u32::try_from(start).unwrap();
        ends.push((start, row::ends(line).into_iter().map(|end| end + at).collect()));
        start += line.len() + 1;
    }
    let rows = ends.iter().map(|(start, ends)| Row::new(layout, text, *start, ends).unwrap());
    let key = Key { job: Some(70), submit: Some(time), end: Some(time), step: None };
    writer.push_run(key, text.as_bytes(), rows, false).unwrap();
    writer.finish().unwrap()
}

fn open(file: &NamedTempFile, layout: &Layout) -> RawTable {
    let table = Table::new(file.reopen().unwrap(), file.path()).unwrap();
    RawTable { table, layout: Some(layout.clone()) }
}

/// The file as a program wrote it that did not know of figures yet.
fn older(file: &NamedTempFile, layout: &Layout) -> NamedTempFile {
    let mut batches = open(file, layout).table.batches(None, false).unwrap();
    let mut batch = batches.next().unwrap().unwrap();
    batch.remove_column(batch.schema().index_of("figures").unwrap());
    let older = NamedTempFile::new().unwrap();
    let properties = Some(properties(1, &layout.names()).unwrap());
    let mut writer =
        ArrowWriter::try_new(older.reopen().unwrap(), batch.schema(), properties).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    older
}

/// The text of the only version in a file.
fn text_of(table: &RawTable) -> String {
    let mut texts = Vec::new();
    table
        .read(&[0], |version| {
            texts.push(String::from_utf8(version.text().to_vec()).unwrap());
            Ok::<_, ArchiveError>(())
        })
        .unwrap();
    texts.concat()
}

#[test]
fn a_run_comes_back_whether_its_figures_are_packed_or_not() {
    let layout = Layout::new(|_| true);
    for (start, is_packed) in [("1792195206", true), ("None", false)] {
        let text = rows_of(&layout, start);
        let file = file(&layout, &text);
        let table = open(&file, &layout);
        let mut packed = Vec::new();
        let found = table.rows(|row| {
            packed.push(row.figures.is_some());
            Ok::<_, ArchiveError>(())
        });
        found.unwrap();
        assert_eq!((text_of(&table), packed), (text, vec![is_packed]));
    }
}

#[test]
fn files_of_before_there_were_figures_are_read_and_filtered() {
    let layout = Layout::new(|_| true);
    let text = rows_of(&layout, "None");
    let older = older(&file(&layout, &text), &layout);
    let table = open(&older, &layout);
    assert_eq!(text_of(&table), text);
    let directory = tempfile::tempdir().unwrap();
    let (filtered, rows) = filter(&table, &Directory::new(directory.path()), |_| true).unwrap();
    assert_eq!((rows, text_of(&open(&filtered, &layout))), (1, text));
}
