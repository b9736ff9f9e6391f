//! An answer of Slurm in JSON: a list of records, and what Slurm complains about.

use std::fmt;
use std::io::{BufReader, Read};

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use steward_common::slurm::ParseError;

use super::legible::Legible;

/// An answer that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JsonError {
    /// It is no JSON, or was cut off, or holds what it should not.
    #[error("{0}")]
    Malformed(#[from] serde_json::Error),
    /// Slurm says that something went wrong.
    #[error("Slurm says: {0}")]
    Complaint(String),
    /// It is about something else: this version answers so to another question.
    #[error("there is no {0:?} in the answer")]
    Other(&'static str),
}

/// Reads a stream.
const BUFFER: usize = 128 * 1024;

/// Turns records into items, one at a time.
pub trait Records {
    /// What a record becomes.
    type Item;

    /// Reads one record.
    ///
    /// # Errors
    /// If it is none.
    fn record<'de, D: Deserializer<'de>>(&mut self, record: D) -> Result<Self::Item, D::Error>;
}

/// Understood or not, for serde.
pub fn understood<T, E: serde::de::Error>(result: Result<T, ParseError>) -> Result<T, E> {
    result.map_err(E::custom)
}

/// Reads the records under `name`.
///
/// # Errors
/// If the answer is no JSON with such a list, or one that says that something went wrong.
pub fn read<R: Records>(
    from: impl Read,
    name: &'static str,
    records: R,
) -> Result<Vec<R::Item>, JsonError> {
    let mut reader =
        serde_json::Deserializer::from_reader(BufReader::with_capacity(BUFFER, Legible::new(from)));
    let answer = Top { name, records }.deserialize(&mut reader)?;
    reader.end()?;
    if !answer.complaints.is_empty() {
        return Err(JsonError::Complaint(answer.complaints.join("; ")));
    }
    answer.items.ok_or(JsonError::Other(name))
}

struct Answer<T> {
    items: Option<Vec<T>>,
    complaints: Vec<String>,
}

struct Top<R> {
    name: &'static str,
    records: R,
}

impl<'de, R: Records> DeserializeSeed<'de> for Top<R> {
    type Value = Answer<R::Item>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

/// What Slurm writes about an error; its fields differ.
#[derive(Deserialize)]
struct Complaint {
    #[serde(default)]
    error: Option<serde_json::Value>,
    #[serde(default)]
    description: Option<String>,
}

impl<'de, R: Records> Visitor<'de> for Top<R> {
    type Value = Answer<R::Item>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an object with {:?}", self.name)
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut answer = Answer { items: None, complaints: Vec::new() };
        while let Some(key) = map.next_key::<String>()? {
            if key == self.name {
                answer.items = Some(map.next_value_seed(Each(&mut self.records))?);
            } else if key == "errors" {
                for one in map.next_value::<Option<Vec<Complaint>>>()?.unwrap_or_default() {
                    let error = one.error.map(|error| match error {
                        serde_json::Value::String(text) => text,
                        other => other.to_string(),
                    });
                    let texts = [error, one.description];
                    answer
                        .complaints
                        .push(texts.into_iter().flatten().collect::<Vec<_>>().join(": "));
                }
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(answer)
    }
}

struct Each<'a, R>(&'a mut R);

impl<'de, R: Records> DeserializeSeed<'de> for Each<'_, R> {
    type Value = Vec<R::Item>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, R: Records> Visitor<'de> for Each<'_, R> {
    type Value = Vec<R::Item>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of records")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element_seed(One(self.0))? {
            items.push(item);
        }
        // Growing left room for as many again.
        items.shrink_to_fit();
        Ok(items)
    }
}

struct One<'a, R>(&'a mut R);

impl<'de, R: Records> DeserializeSeed<'de> for One<'_, R> {
    type Value = R::Item;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        self.0.record(deserializer)
    }
}

/// Makes a visitor that fills a struct from the listed keys of an object and skips the others.
macro_rules! narrow {
    ($visitor:ident for $draft:ty { $($key:literal $variant:ident => $($place:tt).+;)* }) => {
        #[derive(serde::Deserialize)]
        #[serde(field_identifier)]
        enum Key {
            $(#[serde(rename = $key)] $variant,)*
            #[serde(other)]
            Other,
        }

        struct $visitor<'a>(&'a mut steward_common::cluster::words::Words);

        impl<'de> serde::de::Visitor<'de> for $visitor<'_> {
            type Value = $draft;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a record")
            }

            fn visit_map<A>(self, mut map: A) -> Result<$draft, A::Error>
            where
                A: serde::de::MapAccess<'de>,
            {
                let mut draft = <$draft>::default();
                while let Some(key) = map.next_key::<Key>()? {
                    match key {
                        $(Key::$variant => draft.$($place).+ = Take::take(&mut map, self.0)?,)*
                        Key::Other => drop(map.next_value::<serde::de::IgnoredAny>()?),
                    }
                }
                Ok(draft)
            }
        }
    };
}

pub(super) use narrow;
