//! YAML as Python's PyYAML reads it, with the place of every key and value.
//!
//! PyYAML speaks YAML 1.1: `yes` and `off` are flags, `1:30` is ninety, `1e5` is a text. Other than
//! there, a key that stands twice is an error, because one of the two would be lost.

use std::collections::HashMap;

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, Tag};

/// A place in the text, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Line.
    pub line: usize,
    /// Column, in characters.
    pub column: usize,
}

/// A value and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Where.
    pub place: Place,
    /// What.
    pub value: Value,
}

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Nothing.
    Null,
    /// `True`, `off`.
    Flag(bool),
    /// A number.
    Number(f64),
    /// Text.
    Text(String),
    /// A list.
    List(Vec<Node>),
    /// Keys with values, in the order of the text.
    Map(Vec<Entry>),
}

/// A key with its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// Where it stands.
    pub place: Place,
    /// Its value.
    pub value: Node,
}

/// Text that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}:{}: {what}", place.line, place.column)]
pub struct YamlError {
    /// Where.
    pub place: Place,
    /// What is wrong.
    pub what: String,
}

/// Deeper than any settings are, and not so deep that the stack ends.
const DEPTH: usize = 64;
/// Aliases of aliases can stand for more than fits into memory.
const NODES: usize = 100_000;

/// Reads one document. An empty one is [`Value::Null`].
///
/// # Errors
/// If it is no YAML, has a key twice, or more than one document.
pub fn parse(text: &str) -> Result<Node, YamlError> {
    let mut reader =
        Reader { parser: Parser::new_from_str(text), anchors: HashMap::new(), nodes: 0 };
    let mut root = None;
    loop {
        let (event, place) = reader.next()?;
        match event {
            Event::StreamEnd => break,
            Event::Nothing | Event::StreamStart | Event::DocumentEnd => {}
            Event::DocumentStart(_) if root.is_some() => {
                return Err(fail(place, "a second document begins; there may be one only"));
            }
            Event::DocumentStart(_) => {
                let (event, place) = reader.next()?;
                root = Some(reader.node(event, place, 0)?);
            }
            _ => return Err(fail(place, "expected a document")),
        }
    }
    let empty = Node { place: Place { line: 1, column: 1 }, value: Value::Null };
    Ok(root.unwrap_or(empty))
}

fn fail(place: Place, what: impl Into<String>) -> YamlError {
    YamlError { place, what: what.into() }
}

fn place(mark: Marker) -> Place {
    Place { line: mark.line(), column: mark.col() + 1 }
}

struct Reader<'a> {
    parser: Parser<'a, saphyr_parser::StrInput<'a>>,
    anchors: HashMap<usize, (Node, usize)>,
    nodes: usize,
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Result<(Event<'a>, Place), YamlError> {
        match self.parser.next_event() {
            Some(Ok((event, span))) => Ok((event, place(span.start))),
            Some(Err(error)) => Err(fail(place(*error.marker()), error.info())),
            None => Ok((Event::StreamEnd, Place { line: 1, column: 1 })),
        }
    }

    fn count(&mut self, place: Place, nodes: usize) -> Result<(), YamlError> {
        self.nodes += nodes;
        if self.nodes > NODES { Err(fail(place, "there is too much in it")) } else { Ok(()) }
    }

    fn node(&mut self, event: Event<'a>, place: Place, depth: usize) -> Result<Node, YamlError> {
        if depth > DEPTH {
            return Err(fail(place, "it is nested too deeply"));
        }
        let before = self.nodes;
        self.count(place, 1)?;
        let (anchor, value) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                (anchor, scalar(&text, style, tag.as_deref(), place)?)
            }
            Event::SequenceStart(anchor, _) => (anchor, self.list(depth)?),
            Event::MappingStart(anchor, _) => (anchor, self.map(depth)?),
            Event::Alias(anchor) => {
                let Some((known, nodes)) = self.anchors.get(&anchor).cloned() else {
                    return Err(fail(place, "there is no such anchor before it"));
                };
                self.count(place, nodes)?;
                return Ok(Node { place, value: known.value });
            }
            _ => return Err(fail(place, "expected a value")),
        };
        let node = Node { place, value };
        if anchor > 0 {
            self.anchors.insert(anchor, (node.clone(), self.nodes - before));
        }
        Ok(node)
    }

    fn list(&mut self, depth: usize) -> Result<Value, YamlError> {
        let mut list = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => return Ok(Value::List(list)),
                (event, place) => list.push(self.node(event, place, depth + 1)?),
            }
        }
    }

    fn map(&mut self, depth: usize) -> Result<Value, YamlError> {
        let (mut map, mut merged): (Vec<Entry>, Vec<Entry>) = (Vec::new(), Vec::new());
        loop {
            let (event, place) = self.next()?;
            let key = match event {
                Event::MappingEnd => break,
                Event::Scalar(key, ..) => key.into_owned(),
                _ => return Err(fail(place, "a key must be a text")),
            };
            let (event, at) = self.next()?;
            let value = self.node(event, at, depth + 1)?;
            if key == "<<" {
                merge(value, &mut merged)?;
                continue;
            }
            if let Some(first) = map.iter().find(|entry| entry.key == key) {
                let what = format!("the key {key:?} stands in line {} already", first.place.line);
                return Err(fail(place, what));
            }
            map.push(Entry { key, place, value });
        }
        // What a map says itself wins over what it takes from another.
        for entry in merged {
            if map.iter().all(|own| own.key != entry.key) {
                map.push(entry);
            }
        }
        Ok(Value::Map(map))
    }
}

fn merge(from: Node, into: &mut Vec<Entry>) -> Result<(), YamlError> {
    match from.value {
        Value::Map(map) => into.extend(map),
        Value::List(list) => {
            for one in list {
                merge(one, into)?;
            }
        }
        _ => return Err(fail(from.place, "<< takes a map or a list of maps")),
    }
    Ok(())
}

fn scalar(
    text: &str,
    style: ScalarStyle,
    tag: Option<&Tag>,
    place: Place,
) -> Result<Value, YamlError> {
    match tag {
        Some(tag) if tag.is_yaml_core_schema() && tag.suffix == "str" => {
            return Ok(Value::Text(text.to_owned()));
        }
        Some(tag) if !tag.is_yaml_core_schema() => {
            let what = format!("the tag {}{} is not known", tag.handle, tag.suffix);
            return Err(fail(place, what));
        }
        _ => {}
    }
    let plain = style == ScalarStyle::Plain;
    Ok(if plain { bare(text) } else { Value::Text(text.to_owned()) })
}

/// What a word without quotes means.
fn bare(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => Value::Flag(true),
        "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            Value::Flag(false)
        }
        _ => number(text).map_or_else(|| Value::Text(text.to_owned()), Value::Number),
    }
}

fn number(text: &str) -> Option<f64> {
    let (sign, rest) = match text.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, text.strip_prefix('+').unwrap_or(text)),
    };
    if !rest.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    let digits = rest.replace('_', "");
    let in_base = |digits: &str, base| u64::from_str_radix(digits, base).ok().map(|n| n as f64);
    let amount = if let Some(hex) = digits.strip_prefix("0x") {
        in_base(hex, 16)
    } else if let Some(bits) = digits.strip_prefix("0b") {
        in_base(bits, 2)
    } else if digits.contains(':') {
        sixties(&digits)
    } else if digits.len() > 1
        && digits.starts_with('0')
        && digits.chars().all(|c| c.is_ascii_digit())
    {
        // An octal number; one with an 8 in it is a text.
        in_base(&digits, 8)
    } else {
        decimal(&digits)
    };
    amount.map(|amount| sign * amount)
}

/// Digits with or without a point. An exponent needs a point before and a sign within: PyYAML takes
/// `1e5` for a text.
fn decimal(digits: &str) -> Option<f64> {
    let (head, exponent) = match digits.split_once(['e', 'E']) {
        Some((head, exponent)) => (head, Some(exponent)),
        None => (digits, None),
    };
    let signed = |text: &str| text.starts_with(['+', '-']);
    if exponent.is_some_and(|exponent| !signed(exponent) || !head.contains('.')) {
        return None;
    }
    let fits = head.chars().all(|c| c.is_ascii_digit() || c == '.') && head != ".";
    if fits { digits.parse().ok() } else { None }
}

/// `1:30` is ninety.
fn sixties(digits: &str) -> Option<f64> {
    let mut sum = 0.0;
    for (at, part) in digits.split(':').enumerate() {
        let part: u32 = part.parse().ok()?;
        if at > 0 && part > 59 {
            return None;
        }
        sum = sum * 60.0 + f64::from(part);
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Value {
        parse(text).unwrap().value
    }

    #[test]
    fn bare_words_mean_what_python_takes_them_for() {
        for (text, expected) in [
            ("True", Value::Flag(true)),
            ("off", Value::Flag(false)),
            ("\"off\"", Value::Text("off".into())),
            ("~", Value::Null),
            ("61", Value::Number(61.0)),
            ("-0.85", Value::Number(-0.85)),
            ("100_000", Value::Number(100_000.0)),
            ("010", Value::Number(8.0)),
            ("0x10", Value::Number(16.0)),
            ("1:30", Value::Number(90.0)),
            ("1.5e+3", Value::Number(1500.0)),
            ("1e5", Value::Text("1e5".into())),
            ("08", Value::Text("08".into())),
            ("'61'", Value::Text("61".into())),
            ("!!str 61", Value::Text("61".into())),
            ("della-gpu", Value::Text("della-gpu".into())),
            ("", Value::Null),
        ] {
            assert_eq!(value(text), expected, "{text:?}");
        }
    }

    #[test]
    fn keys_have_places_and_maps_can_share() {
        let text = "a: &x\n  b: 1\n  c: [p, q]\nd:\n  <<: *x\n  b: 2\n";
        let Value::Map(map) = value(text) else { panic!() };
        assert_eq!((map[1].key.as_str(), map[1].place.line), ("d", 4));
        let Value::Map(d) = &map[1].value.value else { panic!() };
        assert_eq!((d[0].key.as_str(), &d[0].value.value), ("b", &Value::Number(2.0)));
        assert_eq!((d[1].key.as_str(), d.len()), ("c", 2));
        let Value::Map(a) = &map[0].value.value else { panic!() };
        assert_eq!(a[0].place, Place { line: 2, column: 3 });
    }

    #[test]
    fn what_cannot_be_used_is_told_with_its_place() {
        for (text, said) in [
            ("a: 1\nb: 2\na: 3\n", "3:1: the key \"a\" stands in line 1 already"),
            ("a:\n  x: 1\n  x: 1\n", "3:3: the key \"x\" stands in line 2 already"),
            ("a: [1, 2\nb: 3", "2:"),
            ("a: 1\n---\nb: 2\n", "2:1: a second document"),
            ("a: !python/object x", "1:"),
            ("? [a]\n: 1\n", "1:3: a key must be a text"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.starts_with(said), "{text:?}: {error}");
        }
        assert!(parse(&"[".repeat(100)).unwrap_err().what.contains("nested too deeply"));
        let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
        for n in 1..12 {
            let list = vec![format!("*a{}", n - 1); 9].join(", ");
            bomb += &format!("a{n}: &a{n} [{list}]\n");
        }
        assert!(parse(&bomb).unwrap_err().what.contains("too much"));
    }
}
