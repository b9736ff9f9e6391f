//! The least that can be done for rules: the columns that they look at, read from the archive, and
//! Jobstats' summaries unpacked into the rules' own types. `tests/bench/rules` compares with it.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

use arrow_array::Array;
use arrow_array::cast::AsArray;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::read::GzDecoder;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use steward_aggregator::archive::facts::columns;
use steward_aggregator::source::jobstats::Summary;

/// The program's own, for the same terms.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> anyhow::Result<()> {
    let Some(directory) = std::env::args().nth(1) else {
        anyhow::bail!("usage: read_comments DIRECTORY");
    };
    let mut files: Vec<_> = std::fs::read_dir(directory)?.collect::<Result<_, _>>()?;
    files.sort_by_key(std::fs::DirEntry::file_name);
    let (mut rows, mut summaries) = (0, 0);
    for file in files {
        let (more, with) = read(&file.path())?;
        rows += more;
        summaries += with;
    }
    writeln!(std::io::stdout(), "{rows} rows, {summaries} summaries")?;
    Ok(())
}

fn read(path: &Path) -> anyhow::Result<(usize, usize)> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(File::open(path)?)?;
    let wanted = columns();
    let mask = ProjectionMask::columns(builder.parquet_schema(), wanted.iter().copied());
    let (mut rows, mut summaries) = (0, 0);
    for batch in builder.with_projection(mask).with_batch_size(32_768).build()? {
        let batch = batch?;
        rows += batch.num_rows();
        let comments =
            batch.column_by_name("admin_comment").map(|column| column.as_string::<i32>());
        let Some(comments) = comments else { anyhow::bail!("{}: no comments", path.display()) };
        for row in (0..comments.len()).filter(|row| comments.is_valid(*row)) {
            summaries += usize::from(unpack(comments.value(row))?.is_some());
        }
    }
    Ok((rows, summaries))
}

/// The summary in a comment, as one would read it without a second thought.
fn unpack(comment: &str) -> anyhow::Result<Option<Summary>> {
    let Some(packed) = comment.strip_prefix("JS1:H4s").map(|_| &comment["JS1:".len()..]) else {
        return Ok(None);
    };
    let mut text = Vec::new();
    GzDecoder::new(STANDARD.decode(packed)?.as_slice()).read_to_end(&mut text)?;
    Ok(Some(serde_json::from_slice(&text)?))
}
