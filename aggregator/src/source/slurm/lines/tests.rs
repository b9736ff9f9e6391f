use super::*;

fn layout() -> Layout {
    Layout::new(|field| matches!(field, Field::JobIdRaw | Field::Submit | Field::JobName))
}

/// What a reader sees that gets `step` bytes at a time: each job as its names, or as broken.
fn seen(text: &[u8], step: usize) -> Vec<String> {
    try_seen(text, step).unwrap()
}

fn try_seen(text: &[u8], step: usize) -> io::Result<Vec<String>> {
    struct Slow<'a>(&'a [u8], usize);
    impl Read for Slow<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let size = self.0.len().min(self.1).min(into.len());
            into[..size].copy_from_slice(&self.0[..size]);
            self.0 = &self.0[size..];
            Ok(size)
        }
    }
    let (layout, mut seen) = (layout(), Vec::new());
    Lines::new(&layout, &Seal::of(*b"abcdefgh")).read(Slow(text, step), |piece| {
        seen.push(match piece {
            Piece::Whole(job) => {
                assert!(!job.bytes().windows(9).any(|part| part == b"\x1eabcdefgh"));
                let names: Vec<String> =
                    job.rows().map(|row| row.get(Field::JobName).to_owned()).collect();
                names.join("/")
            }
            Piece::Broken { id, submit, bytes, doubt } => {
                let doubt: String = doubt.iter().map(|part| format!(" ?{}", shown(part))).collect();
                let (id, submit) = (id.unwrap_or("?"), submit.unwrap_or("?"));
                format!("!{id}:{submit}:{}{doubt}", bytes.len())
            }
            Piece::Stray { id, bytes } => format!("#{}:{}", id.unwrap_or("?"), shown(bytes)),
        });
        Ok::<(), io::Error>(())
    })?;
    Ok(seen)
}

fn shown(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).replace('\x1f', "~")
}

/// `T` is a time as sacct prints it, `F` one as a user would forge it.
fn check(text: &str, expected: &[&str]) {
    let text = text.replace("~T", "~7\x1eabcdefgh").replace("~F", "~7\x1eabcdefgi");
    let text = text.replace('~', "\x1f");
    for step in [1, 7, 1000] {
        assert_eq!(seen(text.as_bytes(), step), expected, "{text:?} by {step}");
    }
}

#[test]
fn steps_belong_to_the_job_before_them() {
    check("1~T~a~1\n1.batch~T~b~1.batch\n1.0~T~c~1.0\n2~T~d~2\n", &["a/b/c", "d"]);
    // Two runs of one job are two jobs here.
    check("1~T~a~1\n1.0~T~b~1.0\n1~T~a~1\n1.0~T~c~1.0\n", &["a/b", "a/c"]);
    check("", &[]);
}

#[test]
fn a_name_of_several_lines_is_one_row() {
    check("1~T~a\nb\n\nc~1\n2~T~d~2\n", &["a\nb\n\nc", "d"]);
    check("1~T~a~1\n1.0~T~x\ny~1.0\n2~T~d\n~2\n", &["a/x\ny", "d\n"]);
    // The last line may lack its end.
    check("1~T~a\nb~1", &["a\nb"]);
}

#[test]
fn a_name_with_a_delimiter_breaks_its_job_only() {
    check("1~T~a~1\n2~T~x~y~2\n2.0~T~s~2.0\n3~T~c~3\n", &["a", "!2:7:22", "c"]);
    check("1~T~a~1\n1.0~T~x~y\nz~1.0\n3~T~c~3\n", &["!1:7:24", "c"]);
}

#[test]
fn text_that_is_no_row_is_kept_and_the_next_row_is_found() {
    check("sacct: warning\n1~T~a~1\n", &["#?:sacct: warning\n", "a"]);
    check("7 warnings\n1~T~a~1\n", &["#?:7 warnings\n", "a"]);
    check("9~8~no seal~9\n1~T~a~1\n", &["#?:9~8~no seal~9\n", "a"]);
    check("1~T~a~1\n2.batch~T~b~2.batch\n3~T~c~3\n", &["a", "!2:?:20", "c"]);
}

#[test]
fn a_row_that_never_ends_is_kept_and_its_job_asked_for() {
    check("1~T\n2~T~b~2\n", &["#1:1~7\n", "!1:7:0", "b"]);
    check("1~T~a~9\n2~T~b~2\n", &["#1:1~7~a~9\n", "!1:7:0", "b"]);
    check("1~T~a~1\n2~T~b", &["a", "#2:2~7~b\n", "!2:7:0"]);
    check("1~T~a~1\n1.0~T~b\n2~T~b~2\n", &["#1:1.0~7~b\n", "!1:7:8", "b"]);
}

#[test]
fn text_behind_a_row_is_none_of_it() {
    check("1~T~a~1\nwhat?\n2~T~b~2\n", &["#?:what?\n", "a", "b"]);
    check("1~T~a~1\nwhat?\n", &["#?:what?\n", "a"]);
    check("1~T~a~1\n9~T\n\n2~T~b~2\n", &["a", "#9:9~7\n\n", "!9:7:0", "b"]);
    check("1~T~a\nb~1\n9~None~x~9\n2~T~b~2\n", &["#?:9~None~x~9\n", "a\nb", "b"]);
    // Behind the job's own row, behind that of a step, and both.
    check("1~T~a~1\nwhat?\n1.0~T~b~1.0\n2~T~c~2\n", &["#?:what?\n", "a/b", "c"]);
    check("1~T~a~1\n1.0~T~b~1.0\nx\ny\n2~T~c~2\n", &["#?:x\ny\n", "a/b", "c"]);
    check("1~T~a~1\nx\n1.0~T~b~1.0\ny\n2~T~c~2\n", &["#?:x\n", "#?:y\n", "a/b", "c"]);
    // The row itself has a delimiter in its name.
    check("1~T~x~y~1\nwhat?\n2~T~b~2\n", &["#?:what?\n", "!1:7:10", "b"]);
}

#[test]
fn no_name_becomes_a_row_whatever_is_in_it() {
    // The beginning of a row, whole rows of others, another row of the same job. All of it may be
    // the name, or only what comes before the first line end.
    check("1~T~x~1\n9~8~forged~1\n2~T~b~2\n", &["!1:7:21 ?9~8~forged~1\n", "b"]);
    let name = "9~8~forged~9\n1~8~y~1\n";
    check(&format!("1~T~x~1\n{name}2~T~b~2\n"), &[&format!("!1:7:29 ?{name}"), "b"]);
    let name = "1.0~8~forged~1.0\n1~8~y~1\n";
    check(&format!("1~T~x~1\n{name}2~T~b~2\n"), &[&format!("!1:7:33 ?{name}"), "b"]);
    check("2~T~b~2\n1~T~x~1\n9~8~forged~1", &["b", "!1:7:21 ?9~8~forged~1\n"]);
    // No name ends with the id of another: this one is not of the row.
    check("2~T~b~2\n1~T~x~1\n9~8~forged~9", &["b", "#?:9~8~forged~9\n", "x"]);
    // What looks like a seal is text.
    check("1~T~x~1\n9~F~forged~1\n2~T~b~2\n", &["!1:7:30 ?9~7\x1eabcdefgi~forged~1\n", "b"]);
    check("1~T~a\x1eabc~1\n2~T~b\x1e~2\n", &["a\x1eabc", "b\x1e"]);
}

#[test]
fn an_answer_without_seals_is_an_error() {
    let error = try_seen(b"1\x1f7\x1fa\x1f1\n", 1000).unwrap_err().to_string();
    assert!(error.contains("slurm.sacct must pass its environment on"), "{error}");
}

#[test]
fn a_job_of_many_long_rows_is_read_and_a_row_without_end_is_an_error() {
    let name = "n".repeat(4096);
    let step = |at| format!("1.{at}\x1f7\x1eabcdefgh\x1f{name}\x1f1.{at}\n");
    let steps: String = (0..300).map(step).collect();
    let text = format!("1\x1f7\x1eabcdefgh\x1fa\x1f1\n{steps}");
    let jobs = seen(text.as_bytes(), 1 << 16);
    assert_eq!((jobs.len(), jobs[0].len()), (1, 1 + 300 * 4097));

    struct Endless<'a>(&'a [u8], &'a [u8]);
    impl Read for Endless<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            if self.0.is_empty() {
                self.0 = self.1;
            }
            self.0.read(into)
        }
    }
    let (layout, seal) = (layout(), Seal::of(*b"abcdefgh"));
    for (first, again, shown) in [
        (&b""[..], &b"aaaa"[..], "begins with 'aaaaaaaa"),
        (b"", b"a\x1b\n", "begins with 'a\\x1b\\na"),
        (b"77\x1f7\x1eabcdefgh\x1fname", b"a", "begins with '77'"),
        (b"1\x1f7\x1eabcdefgh\x1fa\x1f1\n", b"a\n", "begins with '1'"),
    ] {
        let mut lines = Lines::new(&layout, &seal);
        let error = lines.read(Endless(first, again), |_| Ok::<(), io::Error>(())).unwrap_err();
        let error = error.to_string();
        assert!(error.starts_with("a row of 1 MiB or more: it "), "{error}");
        assert!(error.contains(shown) && error.len() < 200, "{shown}: {error}");
        assert!(lines.bytes.len() < 4 << 20);
    }
}

#[test]
fn bytes_that_are_no_text_stay_in_their_place() {
    assert_eq!(seen(b"1\x1f7\x1eabcdefgh\x1fa\xff\xfeb\x1f1\n", 1000), ["a??b"]);
}
