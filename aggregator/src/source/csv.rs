//! Tables of text with commas (RFC 4180), as other programs leave them.

/// A record, with the line on which it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// From 1.
    pub line: usize,
    /// Its fields.
    pub fields: Vec<String>,
}

/// All records. A field may stand in quotation marks and then hold commas, line breaks and doubled marks.
/// Empty lines are none. A mark that is never closed makes the rest one record, as everywhere.
#[must_use]
pub fn records(text: &str) -> Vec<Record> {
    let mut all = Vec::new();
    let mut reader = text.trim_start_matches('\u{feff}').chars().peekable();
    let (mut line, mut begun) = (1, 1);
    let (mut fields, mut field, mut quoted) = (Vec::new(), String::new(), false);
    loop {
        let c = reader.next();
        match c {
            Some('"') if quoted && reader.peek() == Some(&'"') => {
                reader.next();
                field.push('"');
            }
            Some('"') if quoted => quoted = false,
            Some('"') if field.is_empty() => quoted = true,
            Some('\r') if !quoted && reader.peek() == Some(&'\n') => {}
            Some(',') if !quoted => fields.push(std::mem::take(&mut field)),
            Some('\n') if quoted => {
                line += 1;
                field.push('\n');
            }
            Some('\n') | None => {
                fields.push(std::mem::take(&mut field));
                let record = Record { line: begun, fields: std::mem::take(&mut fields) };
                if record.fields.iter().any(|field| !field.is_empty()) {
                    all.push(record);
                }
                line += 1;
                begun = line;
                if c.is_none() {
                    return all;
                }
            }
            Some(c) => field.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<(usize, Vec<String>)> {
        records(text).into_iter().map(|one| (one.line, one.fields)).collect()
    }

    fn row(line: usize, fields: &[&str]) -> (usize, Vec<String>) {
        (line, fields.iter().map(|field| (*field).to_owned()).collect())
    }

    #[test]
    fn fields_may_be_quoted_and_lines_end_either_way() {
        assert_eq!(read(""), []);
        assert_eq!(read("\u{feff}a,b\r\n1,\n"), [row(1, &["a", "b"]), row(2, &["1", ""])]);
        assert_eq!(
            read("\"a,b\",\"c\"\"d\"\n\n\"e\nf\",g\nh"),
            [row(1, &["a,b", "c\"d"]), row(3, &["e\nf", "g"]), row(5, &["h"]),]
        );
        assert_eq!(read("a\"b,c"), [row(1, &["a\"b", "c"])]);
        assert_eq!(read("x,\"a\nb"), [row(1, &["x", "a\nb"])]);
    }
}
