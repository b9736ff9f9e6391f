//! A stream that is text, whatever comes. Anyone may give a job a name that is none: it must not
//! hide all others.

use std::io::{self, Read};

/// How much is looked at in one go.
const BLOCK: usize = 128 * 1024;

/// Hands on what it reads, with a question mark for every byte that is no part of a character.
pub struct Legible<R> {
    from: R,
    bytes: Vec<u8>,
    /// What was handed on.
    given: usize,
    /// What may be handed on.
    ready: usize,
    /// What was read; a character may begin in what is not ready.
    filled: usize,
}

impl<R: Read> Legible<R> {
    /// Reads from there.
    pub fn new(from: R) -> Legible<R> {
        Legible { from, bytes: vec![0; BLOCK], given: 0, ready: 0, filled: 0 }
    }

    fn fill(&mut self) -> io::Result<()> {
        self.bytes.copy_within(self.ready..self.filled, 0);
        (self.filled, self.ready, self.given) = (self.filled - self.ready, 0, 0);
        while self.ready == 0 {
            let read = self.from.read(self.bytes.get_mut(self.filled..).unwrap_or_default())?;
            self.filled += read;
            self.mend(read == 0);
            if read == 0 {
                break;
            }
        }
        Ok(())
    }

    /// Makes text of what was read; at the end also of a character that was cut off.
    fn mend(&mut self, at_end: bool) {
        loop {
            let rest = self.bytes.get_mut(self.ready..self.filled).unwrap_or_default();
            let Err(error) = std::str::from_utf8(rest) else {
                self.ready = self.filled;
                return;
            };
            let good = error.valid_up_to();
            let bad = match error.error_len() {
                Some(bad) => bad,
                None if at_end => rest.len() - good,
                None => {
                    self.ready += good;
                    return;
                }
            };
            rest.get_mut(good..good + bad).unwrap_or_default().fill(b'?');
            self.ready += good + bad;
        }
    }
}

impl<R: Read> Read for Legible<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.given == self.ready {
            self.fill()?;
        }
        let text = self.bytes.get(self.given..self.ready).unwrap_or_default();
        let count = text.len().min(out.len());
        if let (Some(out), Some(text)) = (out.get_mut(..count), text.get(..count)) {
            out.copy_from_slice(text);
        }
        self.given += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives so many bytes at a time.
    struct Drops<'a>(&'a [u8], usize);

    impl Read for Drops<'_> {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            let count = self.1.min(self.0.len()).min(out.len());
            out[..count].copy_from_slice(&self.0[..count]);
            self.0 = &self.0[count..];
            Ok(count)
        }
    }

    #[test]
    fn bytes_that_are_no_text_become_question_marks_and_text_stays() {
        let cases: [(&[u8], &str); 6] = [
            (b"", ""),
            (b"plain", "plain"),
            ("Gr\u{fc}\u{df}e \u{1f600}".as_bytes(), "Gr\u{fc}\u{df}e \u{1f600}"),
            (b"x\xff\"", "x?\""),
            (b"cut \xf0\x9f\x98", "cut ???"),
            (b"\xc3(\xe2\x82", "?(??"),
        ];
        for (bytes, text) in cases {
            for drop in 1..=bytes.len().max(1) {
                let mut read = String::new();
                Legible::new(Drops(bytes, drop)).read_to_string(&mut read).unwrap();
                assert_eq!(read, text, "{drop} at a time");
            }
        }
    }
}
