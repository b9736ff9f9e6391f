//! `raw`, read again: which versions of which runs a file holds, and their rows.

use steward_common::slurm::sacct::Layout;
use steward_common::time::Timestamp;

use super::cells::{self, bytes, texts, times};
use super::raw::{FIELDS, Form, Key};
use super::read::{RunKey, Table};
use super::short::{self, PHRASES, Phrase, Phrases, Places, Short};
use super::store::RawFile;
use super::{Archive, ArchiveError};

/// The columns by which a row is found.
const KEYS: &[&str] = &["job_id_raw", "submit_time", "end_time", "step", "form"];

/// A raw file that is open.
pub struct RawTable {
    table: Table,
    layout: Option<Layout>,
}

/// A row of it.
pub struct RawRow<'a> {
    /// By what it is found.
    pub key: Key<'a>,
    /// What its text is.
    pub form: Form,
    /// When it was collected; 0 where that was not read.
    pub collected: Timestamp,
    /// What it has in common with others; `None` of other forms, and where it was not read.
    pub phrases: Option<Phrases<'a>>,
    /// Its own figures, packed, where they do not stand in its text.
    pub figures: Option<&'a [u8]>,
    /// Its text; empty where that was not read.
    pub text: &'a [u8],
}

impl<'a> RawRow<'a> {
    /// All of it, if it is written short.
    fn short(&self) -> Option<Short<'a>> {
        Some(Short { phrases: self.phrases?, figures: self.figures, text: self.text })
    }

    /// Which run it is of.
    #[must_use]
    pub fn run(&self) -> Option<RunKey> {
        self.key.job.zip(self.key.submit)
    }

    /// Appends the job's own row as sacct gave it, if all rows are written short.
    #[must_use]
    pub fn expand_first(&self, places: Option<&Places>, out: &mut Vec<u8>) -> Option<()> {
        short::own(out, self.short()?, &self.key, places?)
    }

    /// All that users have written.
    pub fn texts(&self) -> impl Iterator<Item = &[u8]> {
        self.phrases.iter().flatten().copied().chain([self.text])
    }

    /// Whether a version of a run begins with it.
    #[must_use]
    pub fn begins_version(&self) -> bool {
        let form = matches!(self.form, Form::Plain | Form::Short | Form::Mended | Form::Import);
        form && self.key.step.is_none() && self.run().is_some()
    }
}

/// A version of a run: its rows as they were collected together.
pub struct Version {
    /// Which run it is of.
    pub run: RunKey,
    /// What the texts are.
    pub form: Form,
    /// When it was collected.
    pub collected: Timestamp,
    text: Vec<u8>,
    ends: Vec<usize>,
    places: Option<Places>,
}

impl Version {
    /// The texts, each with a line end.
    #[must_use]
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// Where each text begins and ends.
    pub fn rows(&self) -> impl Iterator<Item = std::ops::Range<usize>> {
        let starts = std::iter::once(0).chain(self.ends.iter().map(|end| end + 1));
        starts.zip(&self.ends).map(|(start, end)| start..*end)
    }

    fn begin(&mut self, run: RunKey, row: &RawRow<'_>) {
        (self.run, self.form, self.collected) = (run, whole(row.form), row.collected);
        self.text.clear();
        self.ends.clear();
        self.add(row);
    }

    fn add(&mut self, row: &RawRow<'_>) {
        if row.form != Form::Short {
            self.text.extend(row.text);
            return self.end_row();
        }
        let Version { text, ends, places, .. } = self;
        let read = row
            .short()
            .zip(places.as_ref())
            .and_then(|(short, places)| short::read(text, ends, short, &row.key, places));
        if read.is_none() {
            self.form = Form::Malformed;
            self.end_row();
        }
    }

    fn end_row(&mut self) {
        self.ends.push(self.text.len());
        self.text.push(b'\n');
    }

    fn goes_on_with(&self, row: &RawRow<'_>) -> bool {
        let form = whole(row.form) == self.form || self.form == Form::Malformed;
        row.key.step.is_some() && form && row.run() == Some(self.run)
    }
}

/// What a row is once it says all again.
fn whole(form: Form) -> Form {
    if form == Form::Short { Form::Plain } else { form }
}

impl RawTable {
    /// Opens a raw file.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn open(archive: &Archive, file: &RawFile) -> Result<RawTable, ArchiveError> {
        RawTable::find(archive, file)?.ok_or_else(|| {
            let path = archive.shelf().address(&file.item.name);
            let why = "it was there a moment ago and is gone".to_owned();
            ArchiveError::Content { path, why }
        })
    }

    /// The same; `None` if it is gone or was moved meanwhile.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn find(archive: &Archive, file: &RawFile) -> Result<Option<RawTable>, ArchiveError> {
        let path = archive.shelf().address(&file.item.name);
        let Some(open) = archive.shelf().open(&file.item.name)? else { return Ok(None) };
        let table = Table::new(open, &path)?;
        let layout = table.value(FIELDS).and_then(Layout::of_names);
        Ok(Some(RawTable { table, layout }))
    }

    /// The file.
    #[must_use]
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// The fields of its texts; `None` if it holds no rows of sacct.
    #[must_use]
    pub fn layout(&self) -> Option<&Layout> {
        self.layout.as_ref()
    }

    /// Where the fields stand that key columns have.
    #[must_use]
    pub fn places(&self) -> Option<Places> {
        self.layout.as_ref().map(Places::of)
    }

    /// Shows `visit` the first row of each version of a run, and rows of agents, without texts,
    /// each with its place.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn versions(&self, mut visit: impl FnMut(u32, &RawRow<'_>)) -> Result<(), ArchiveError> {
        let mut place = 0;
        for batch in self.table.batches(Some(KEYS), false)? {
            each(&batch?, &mut place, |place, row| {
                if row.begins_version() || (row.form == Form::Agent && row.run().is_some()) {
                    visit(place, row);
                }
                Ok::<_, ArchiveError>(())
            })?;
        }
        Ok(())
    }

    /// Shows `visit` every row.
    ///
    /// # Errors
    /// If the file cannot be read, or `visit` fails.
    pub fn rows<E: From<ArchiveError>>(
        &self,
        mut visit: impl FnMut(&RawRow<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut place = 0;
        for batch in self.table.batches(None, false)? {
            each(&batch?, &mut place, |_, row| visit(row))?;
        }
        Ok(())
    }

    /// Shows `visit` the versions that begin at these places, which are in order.
    ///
    /// # Errors
    /// If the file cannot be read, or `visit` fails.
    pub fn read<E: From<ArchiveError>>(
        &self,
        places: &[u32],
        mut visit: impl FnMut(&Version) -> Result<(), E>,
    ) -> Result<(), E> {
        let nothing = (0, Timestamp::new(0));
        let mut version = Version {
            run: nothing,
            form: Form::Plain,
            collected: nothing.1,
            text: Vec::new(),
            ends: Vec::new(),
            places: self.places(),
        };
        let all: Vec<&str> =
            self.table.schema().fields().iter().map(|field| field.name().as_str()).collect();
        let mut places = places.iter().copied().peekable();
        let mut first = 0_u32;
        for (group, rows) in self.table.groups().enumerate() {
            let behind = first.saturating_add(u32::try_from(rows).unwrap_or(u32::MAX));
            let mut place = first;
            first = behind;
            // What began in the group before may go on in this one.
            if version.ends.is_empty() && places.peek().is_none_or(|next| *next >= behind) {
                continue;
            }
            for batch in self.table.group(&all, group)? {
                each(&batch?, &mut place, |place, row| {
                    if !version.ends.is_empty() {
                        if version.goes_on_with(row) {
                            version.add(row);
                            return Ok(());
                        }
                        visit(&version)?;
                        version.ends.clear();
                    }
                    if places.next_if_eq(&place).is_some()
                        && let Some(run) = row.run()
                    {
                        version.begin(run, row);
                    }
                    Ok::<(), E>(())
                })?;
            }
        }
        if version.ends.is_empty() { Ok(()) } else { visit(&version) }
    }
}

/// Shows the rows of a batch, of which the first has this place; then it is that behind the last.
pub(super) fn each<E>(
    batch: &arrow_array::RecordBatch,
    place: &mut u32,
    mut visit: impl FnMut(u32, &RawRow<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let mut jobs = cells::whole(batch, "job_id_raw");
    let mut submits = times(batch, "submit_time");
    let mut ends = times(batch, "end_time");
    let mut steps = texts(batch, "step");
    let mut forms = texts(batch, "form");
    let mut collected = times(batch, "collected_at");
    let mut text = bytes(batch, "text");
    let mut figures = bytes(batch, "figures");
    let mut phrases = Phrase::COLUMNS.map(|name| bytes(batch, name));
    for _ in 0..batch.num_rows() {
        let row = RawRow {
            key: Key {
                job: jobs.next().flatten().and_then(|job| u32::try_from(job).ok()),
                submit: submits.next().flatten(),
                end: ends.next().flatten(),
                step: steps.next().flatten(),
            },
            // A form of a later version of this program is nothing that this one can read.
            form: forms.next().flatten().and_then(Form::of).unwrap_or(Form::Malformed),
            collected: collected.next().flatten().unwrap_or(Timestamp::new(0)),
            phrases: all_of(phrases.each_mut().map(|phrase| phrase.next().flatten())),
            figures: figures.next().flatten(),
            text: text.next().flatten().unwrap_or_default(),
        };
        visit(*place, &row)?;
        *place = place.saturating_add(1);
    }
    Ok(())
}

/// All of them, if none is missing.
fn all_of(phrases: [Option<&[u8]>; PHRASES]) -> Option<Phrases<'_>> {
    let [who, how, asked, steps] = phrases;
    Some([who?, how?, asked?, steps?])
}

#[cfg(test)]
mod tests;
