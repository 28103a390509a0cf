//! All samples of a store as one Parquet file, for pandas, Polars or DuckDB: a line a sample.
//!
//! Texts repeat from line to line, and Parquet's dictionaries keep each once a group. Groups hold a million samples, so that
//! writing takes the memory of one group and of the file itself.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::Result;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use super::Listed;
use crate::{Outcome, Results, in_words};

const SCHEMA: &str = "message samples {
    REQUIRED BYTE_ARRAY machine (UTF8);
    REQUIRED BYTE_ARRAY model (UTF8);
    REQUIRED BYTE_ARRAY driver (UTF8);
    REQUIRED BYTE_ARRAY commit (UTF8);
    REQUIRED BYTE_ARRAY started (UTF8);
    REQUIRED BYTE_ARRAY system (UTF8);
    REQUIRED BYTE_ARRAY run (UTF8);
    REQUIRED BYTE_ARRAY row (UTF8);
    REQUIRED BYTE_ARRAY parameters (UTF8);
    REQUIRED BYTE_ARRAY unit (UTF8);
    REQUIRED INT64 round;
    REQUIRED DOUBLE value;
}";
/// Who wrote a file, in its own words: by them one is known that may be replaced.
const CREATED_BY: &str = "syncscope, samples of a store";
const TEXTS: usize = 10;
const GROUP: usize = 1 << 20;

/// The file, as its groups come.
pub struct SampleTable {
    writer: SerializedFileWriter<Vec<u8>>,
    texts: [Vec<ByteArray>; TEXTS],
    rounds: Vec<i64>,
    values: Vec<f64>,
}

impl std::fmt::Debug for SampleTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SampleTable").field("waiting", &self.values.len()).finish_non_exhaustive()
    }
}

impl SampleTable {
    /// A file without samples.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn new() -> Result<Self> {
        let schema = Arc::new(parse_message_type(SCHEMA)?);
        let properties = WriterProperties::builder().set_created_by(CREATED_BY.to_owned()).build();
        let writer = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties))?;
        Ok(Self { writer, texts: Default::default(), rounds: Vec::new(), values: Vec::new() })
    }

    /// Whether a file is such a table, which may be replaced by another.
    pub fn is_one(file: &Path) -> bool {
        let reader = File::open(file).ok().and_then(|file| SerializedFileReader::new(file).ok());
        reader.is_some_and(|reader| reader.metadata().file_metadata().created_by() == Some(CREATED_BY))
    }

    /// Adds the samples of a file.
    ///
    /// # Errors
    /// They cannot be written into memory.
    pub fn put(&mut self, listed: &Listed, results: &Results) -> Result<()> {
        let [commit, driver] = [&listed.commit, &listed.driver].map(|fact| fact.as_deref().unwrap_or(""));
        let of_file = [&*listed.machine, &*listed.model, driver, commit, &*listed.started].map(ByteArray::from);
        for row in &results.rows {
            let of_row = [&*row.spec.id, &*in_words(&row.spec.parameters), row.spec.unit.base()].map(ByteArray::from);
            for series in &row.series {
                let (Outcome::Measured { samples, .. } | Outcome::Derived { samples }) = &series.outcome else {
                    continue;
                };
                let run = results.runs.iter().find(|run| run.id == series.run);
                let of_run = [run.map_or("", |run| &*run.system), &*series.run].map(ByteArray::from);
                let line = of_file.iter().chain(&of_run).chain(&of_row);
                for (column, text) in self.texts.iter_mut().zip(line) {
                    column.extend(std::iter::repeat_n(text, samples.len()).cloned());
                }
                self.rounds.extend((0..).take(samples.len()));
                self.values.extend(samples);
            }
        }
        if self.values.len() >= GROUP { self.write_group() } else { Ok(()) }
    }

    /// The file's content.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn finish(mut self) -> Result<Vec<u8>> {
        if !self.values.is_empty() {
            self.write_group()?;
        }
        self.writer.into_inner()
    }

    fn write_group(&mut self) -> Result<()> {
        let mut group = self.writer.next_row_group()?;
        for texts in &mut self.texts {
            if let Some(mut column) = group.next_column()? {
                column.typed::<ByteArrayType>().write_batch(texts, None, None)?;
                column.close()?;
            }
            texts.clear();
        }
        if let Some(mut column) = group.next_column()? {
            column.typed::<Int64Type>().write_batch(&self.rounds, None, None)?;
            column.close()?;
        }
        if let Some(mut column) = group.next_column()? {
            column.typed::<DoubleType>().write_batch(&self.values, None, None)?;
            column.close()?;
        }
        group.close()?;
        self.rounds.clear();
        self.values.clear();
        Ok(())
    }
}
