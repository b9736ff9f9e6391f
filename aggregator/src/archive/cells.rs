//! The columns of rows that were read, value by value. A column that is not there has no values.

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int32Type, Int64Type, TimestampMillisecondType};
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, RecordBatch};
use arrow_buffer::NullBuffer;
use steward_common::time::Timestamp;

use super::column::before;

/// A column of a batch, or the one that tells as much in older files.
pub fn column<'a>(batch: &'a RecordBatch, name: &str) -> Option<&'a ArrayRef> {
    batch.column_by_name(name).or_else(|| batch.column_by_name(before(name)?))
}

/// The numbers of a column, by row; all absent if there is no such column.
pub struct Cells<'a, T: ArrowPrimitiveType> {
    values: &'a [T::Native],
    nulls: Option<&'a NullBuffer>,
}

impl<'a, T: ArrowPrimitiveType> Cells<'a, T> {
    /// Those of a column of a batch.
    pub fn of(batch: &'a RecordBatch, name: &str) -> Cells<'a, T> {
        let column = column(batch, name).and_then(|column| column.as_primitive_opt::<T>());
        let nulls = column.and_then(Array::nulls).filter(|nulls| nulls.null_count() > 0);
        Cells { values: column.map_or(&[], |column| column.values()), nulls }
    }

    /// The number of a row.
    #[inline]
    pub fn get(&self, row: usize) -> Option<T::Native> {
        let value = self.values.get(row)?;
        self.nulls.is_none_or(|nulls| nulls.is_valid(row)).then_some(*value)
    }
}

impl Cells<'_, TimestampMillisecondType> {
    /// The moment of a row.
    #[inline]
    pub fn time(&self, row: usize) -> Option<Timestamp> {
        self.get(row).map(|millis| Timestamp::new(millis.div_euclid(1000)))
    }
}

/// The values of a column of whole numbers; all absent if there is no such column.
pub fn whole<'a>(
    batch: &'a RecordBatch,
    name: &str,
) -> impl Iterator<Item = Option<i64>> + use<'a> {
    let cells: Cells<'_, Int64Type> = Cells::of(batch, name);
    (0..batch.num_rows()).map(move |row| cells.get(row))
}

/// The values of a column of numbers.
pub fn real<'a>(batch: &'a RecordBatch, name: &str) -> impl Iterator<Item = Option<f64>> + use<'a> {
    let cells: Cells<'_, Float64Type> = Cells::of(batch, name);
    (0..batch.num_rows()).map(move |row| cells.get(row))
}

/// The values of a column of times.
pub fn times<'a>(
    batch: &'a RecordBatch,
    name: &str,
) -> impl Iterator<Item = Option<Timestamp>> + use<'a> {
    let cells: Cells<'_, TimestampMillisecondType> = Cells::of(batch, name);
    (0..batch.num_rows()).map(move |row| cells.time(row))
}

/// The values of a column of bytes.
pub fn bytes<'a>(
    batch: &'a RecordBatch,
    name: &str,
) -> impl Iterator<Item = Option<&'a [u8]>> + use<'a> {
    let column = batch.column_by_name(name).and_then(|column| column.as_binary_opt::<i32>());
    let rows = batch.num_rows();
    (0..rows).map(move |row| column.and_then(|c| c.is_valid(row).then(|| c.value(row))))
}

/// The values of a column of texts, whether they stand in a dictionary or not.
pub fn texts<'a>(
    batch: &'a RecordBatch,
    name: &str,
) -> impl Iterator<Item = Option<&'a str>> + use<'a> {
    let column = batch.column_by_name(name);
    let plain = column.and_then(|column| column.as_string_opt::<i32>());
    let coded = column.and_then(|column| {
        let keys = column.as_dictionary_opt::<Int32Type>()?;
        Some((keys, keys.values().as_string_opt::<i32>()?))
    });
    (0..batch.num_rows()).map(move |row| match (plain, coded) {
        (Some(texts), _) => texts.is_valid(row).then(|| texts.value(row)),
        (None, Some((keys, values))) => keys.key(row).map(|key| values.value(key)),
        (None, None) => None,
    })
}
