//! Parquet files of other programs: each row becomes a JSON object, by the names of its columns.

use std::fs::File;
use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Float32Type, Float64Type, Int32Type, Int64Type, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, TimeUnit};
use parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use serde_json::{Map, Value};

use super::ArchiveError;
use super::shelf::at;

/// Shows `visit` the rows of a file. Times are whole microseconds since 1970, days whole days.
///
/// # Errors
/// If it cannot be read, or `visit` fails.
pub fn rows<E: From<ArchiveError>>(
    path: &Path,
    mut visit: impl FnMut(Map<String, Value>) -> Result<(), E>,
) -> Result<(), E> {
    let wrong = |error: &dyn std::fmt::Display| ArchiveError::Content {
        path: path.to_owned(),
        why: error.to_string(),
    };
    let file = File::open(path).map_err(at(path))?;
    // What its writer said about types of its own does not matter here.
    let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    let builder = ParquetRecordBatchReaderBuilder::try_new_with_options(file, options)
        .map_err(|error| wrong(&error))?;
    for batch in builder.build().map_err(|error| wrong(&error))? {
        let batch = batch.map_err(|error| wrong(&error))?;
        let schema = batch.schema();
        for row in 0..batch.num_rows() {
            let columns = schema.fields().iter().zip(batch.columns());
            visit(
                columns.map(|(field, column)| (field.name().clone(), value(column, row))).collect(),
            )?;
        }
    }
    Ok(())
}

/// A value as JSON; of a type that no table of jobs has, nothing.
fn value(column: &ArrayRef, row: usize) -> Value {
    if column.is_null(row) {
        return Value::Null;
    }
    match column.data_type() {
        DataType::Utf8 => column.as_string_opt::<i32>().map(|c| c.value(row).into()),
        DataType::LargeUtf8 => column.as_string_opt::<i64>().map(|c| c.value(row).into()),
        DataType::Boolean => column.as_boolean_opt().map(|c| c.value(row).into()),
        DataType::Int32 => column.as_primitive_opt::<Int32Type>().map(|c| c.value(row).into()),
        DataType::Int64 => column.as_primitive_opt::<Int64Type>().map(|c| c.value(row).into()),
        DataType::Float32 => column.as_primitive_opt::<Float32Type>().map(|c| c.value(row).into()),
        DataType::Float64 => column.as_primitive_opt::<Float64Type>().map(|c| c.value(row).into()),
        DataType::Date32 => column.as_primitive_opt::<Date32Type>().map(|c| c.value(row).into()),
        DataType::Timestamp(TimeUnit::Millisecond, _) => column
            .as_primitive_opt::<TimestampMillisecondType>()
            .map(|c| c.value(row).saturating_mul(1000).into()),
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            column.as_primitive_opt::<TimestampMicrosecondType>().map(|c| c.value(row).into())
        }
        DataType::Timestamp(TimeUnit::Nanosecond, _) => column
            .as_primitive_opt::<TimestampNanosecondType>()
            .map(|c| c.value(row).div_euclid(1000).into()),
        _ => None,
    }
    .unwrap_or(Value::Null)
}
