//! Values whose type differs between versions of Slurm.

use std::fmt;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use steward_common::cluster::draft::Figure;
use steward_common::cluster::words::Words;

/// A value that can be taken from a map in any of its spellings.
pub trait Take: Sized {
    /// Takes the value of the key that was just read.
    ///
    /// # Errors
    /// If the text is no JSON.
    fn take<'de, M: MapAccess<'de>>(map: &mut M, words: &mut Words) -> Result<Self, M::Error>;
}

impl Take for Arc<str> {
    fn take<'de, M: MapAccess<'de>>(map: &mut M, words: &mut Words) -> Result<Self, M::Error> {
        map.next_value_seed(Text(words))
    }
}

impl Take for Vec<Arc<str>> {
    fn take<'de, M: MapAccess<'de>>(map: &mut M, words: &mut Words) -> Result<Self, M::Error> {
        map.next_value_seed(List(words))
    }
}

impl Take for Figure {
    fn take<'de, M: MapAccess<'de>>(map: &mut M, _: &mut Words) -> Result<Self, M::Error> {
        map.next_value::<Number>().map(|number| number.0)
    }
}

/// Text; nothing, or a value of another type, is empty. Of a list, it is the elements with commas.
struct Text<'a>(&'a mut Words);

impl<'de> DeserializeSeed<'de> for Text<'_> {
    type Value = Arc<str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Arc<str>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Text<'_> {
    type Value = Arc<str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text")
    }

    fn visit_str<E>(self, text: &str) -> Result<Arc<str>, E> {
        Ok(self.0.intern(text))
    }

    fn visit_unit<E>(self) -> Result<Arc<str>, E> {
        Ok(Arc::default())
    }

    fn visit_bool<E>(self, _: bool) -> Result<Arc<str>, E> {
        Ok(Arc::default())
    }

    fn visit_u64<E>(self, number: u64) -> Result<Arc<str>, E> {
        Ok(self.0.intern(&number.to_string()))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Arc<str>, E> {
        Ok(Arc::default())
    }

    fn visit_f64<E>(self, _: f64) -> Result<Arc<str>, E> {
        Ok(Arc::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Arc<str>, A::Error> {
        let mut joined = String::new();
        while let Some(word) = list.next_element_seed(Text(self.0))? {
            if !joined.is_empty() {
                joined.push(',');
            }
            joined.push_str(&word);
        }
        Ok(self.0.intern(&joined))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Arc<str>, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Arc::default())
    }
}

/// A list of words; one word is a list of it, and text with commas is one too.
struct List<'a>(&'a mut Words);

impl<'de> DeserializeSeed<'de> for List<'_> {
    type Value = Vec<Arc<str>>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for List<'_> {
    type Value = Vec<Arc<str>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of words")
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        let words = text.split(',').filter(|word| !word.is_empty());
        Ok(words.map(|word| self.0.intern(word)).collect())
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Vec::new())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut all = Vec::new();
        while let Some(word) = list.next_element_seed(Text(self.0))? {
            all.push(word);
        }
        Ok(all)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Vec::new())
    }
}

/// `7`, `null`, `{"set": true, "infinite": false, "number": 7}`, `"7"`. What is none of them, a
/// negative number among others, is not set. A number with decimals is cut to a whole one.
#[derive(Clone, Copy, Debug)]
pub struct Number(pub Figure);

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NumberVisitor)
    }
}

struct NumberVisitor;

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "lowercase")]
enum Part {
    Set,
    Infinite,
    Number,
    #[serde(other)]
    Other,
}

impl<'de> Visitor<'de> for NumberVisitor {
    type Value = Number;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number")
    }

    fn visit_u64<E>(self, number: u64) -> Result<Number, E> {
        Ok(Number(Figure::At(number)))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Number, E> {
        Ok(Number(Figure::Unset))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Number, E> {
        let whole = (0.0..9e15).contains(&number);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in range")]
        let figure = if whole { Figure::At(number as u64) } else { Figure::Unset };
        Ok(Number(figure))
    }

    fn visit_str<E>(self, text: &str) -> Result<Number, E> {
        Ok(Number(match text {
            "INFINITE" | "UNLIMITED" => Figure::Infinite,
            text => text.parse().map_or(Figure::Unset, Figure::At),
        }))
    }

    fn visit_unit<E>(self) -> Result<Number, E> {
        Ok(Number(Figure::Unset))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Number, E> {
        Ok(Number(Figure::Unset))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Number, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Number(Figure::Unset))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Number, A::Error> {
        let (mut set, mut infinite, mut number) = (true, false, Figure::Unset);
        while let Some(part) = map.next_key::<Part>()? {
            match part {
                Part::Set => set = map.next_value()?,
                Part::Infinite => infinite = map.next_value()?,
                Part::Number => number = map.next_value::<Number>()?.0,
                Part::Other => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(Number(match (infinite, set) {
            (true, _) => Figure::Infinite,
            (false, true) => number,
            (false, false) => Figure::Unset,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_all_versions() {
        for (text, expected) in [
            ("7", Figure::At(7)),
            ("7.9", Figure::At(7)),
            ("\"7\"", Figure::At(7)),
            ("null", Figure::Unset),
            ("-1", Figure::Unset),
            ("1e300", Figure::Unset),
            ("true", Figure::Unset),
            ("[1]", Figure::Unset),
            ("{\"set\":true,\"infinite\":false,\"number\":7}", Figure::At(7)),
            ("{\"set\":false,\"infinite\":false,\"number\":0}", Figure::Unset),
            ("{\"set\":true,\"infinite\":true,\"number\":0}", Figure::Infinite),
            ("{\"number\":7,\"new\":{}}", Figure::At(7)),
        ] {
            let number: Number = serde_json::from_str(text).unwrap();
            assert_eq!(number.0, expected, "{text}");
        }
    }

    #[test]
    fn text_and_lists_of_all_versions() {
        let mut words = Words::default();
        let mut text = |json: &str| {
            let mut reader = serde_json::Deserializer::from_str(json);
            Text(&mut words).deserialize(&mut reader).unwrap().to_string()
        };
        assert_eq!(text("\"a b\""), "a b");
        assert_eq!(text("null"), "");
        assert_eq!(text("[\"a\",\"b\"]"), "a,b");
        assert_eq!(text("{\"a\":1}"), "");
        assert_eq!(text("7"), "7");
        let mut list = |json: &str| {
            let mut reader = serde_json::Deserializer::from_str(json);
            List(&mut words).deserialize(&mut reader).unwrap().join("|")
        };
        assert_eq!(list("\"a,b\""), "a|b");
        assert_eq!(list("[\"a\",\"b,c\"]"), "a|b,c");
        assert_eq!(list("null"), "");
        assert_eq!(list("\"\""), "");
    }
}
