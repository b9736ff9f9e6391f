use steward_common::slurm::sacct::row;
use steward_common::slurm::sacct::{Field, Layout, Row};
use steward_common::time::Timestamp;

use super::read as short_read;
use super::*;
use crate::archive::raw::Key;

/// Ten fields and the closing id.
fn layout() -> Layout {
    use Field::{
        Account, AllocTres, JobId, JobIdRaw, MaxRss, ReqTres, Submit, TotalCpu, TresUsageInMax,
        TresUsageInTot,
    };
    let fields = [
        JobIdRaw,
        JobId,
        Account,
        Submit,
        ReqTres,
        AllocTres,
        TotalCpu,
        MaxRss,
        TresUsageInTot,
        TresUsageInMax,
    ];
    Layout::new(|field| fields.contains(&field))
}

fn key() -> Key<'static> {
    Key { job: Some(70), submit: Some(Timestamp::new(1_792_195_205)), end: None, step: None }
}

/// The rows of a run written and read again; its phrases and its own text, `None` if it cannot be said.
fn there_and_back(rows: &[String]) -> Option<(Vec<String>, String)> {
    there_and_back_of(&layout(), rows)
}

fn there_and_back_of(layout: &Layout, rows: &[String]) -> Option<(Vec<String>, String)> {
    let places = &Places::of(layout);
    let text = rows.join("\n");
    let (mut at, mut start) = (Vec::new(), 0);
    for one in rows {
        let ends = row::ends(one).into_iter().map(|end| end + u32::try_from(start).unwrap());
        at.push((start, ends.collect::<Vec<u32>>()));
        start += one.len() + 1;
    }
    let all = at.iter().map(|(start, ends)| Row::new(layout, &text, *start, ends).unwrap());
    if has_marks(text.as_bytes(), all.clone()) {
        return None;
    }
    let (mut own_text, mut scratch) = (b"before".to_vec(), Scratch::default());
    assert!(write(&mut own_text, &mut scratch, text.as_bytes(), all, &key(), places));
    let own_text = own_text.strip_prefix(b"before").unwrap();
    let short = Short { phrases: scratch.phrases(), figures: scratch.figures(), text: own_text };
    let (mut back, mut ends) = (b"before".to_vec(), Vec::new());
    read(&mut back, &mut ends, short, &key(), places).unwrap();
    assert_eq!(std::str::from_utf8(&back), Ok(format!("before{text}\n").as_str()));
    assert_eq!(ends.len(), rows.len());
    let mut first = Vec::new();
    own(&mut first, short, &key(), places).unwrap();
    assert_eq!(std::str::from_utf8(&first), Ok(rows[0].as_str()));
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let figures = scratch.figures().map(|figures| text(&figures::unpack(figures)));
    let own = figures.unwrap_or_default() + &text(own_text);
    Some((scratch.phrases().iter().map(|phrase| text(phrase)).collect(), own))
}

/// A row of these fields between its ids.
fn row(id: &str, fields: [&str; 9]) -> String {
    [&[id][..], &fields, &[id]].concat().join("\x1f")
}

#[test]
fn what_is_known_from_elsewhere_is_not_said_again_and_figures_stand_apart() {
    let own = ["70", "lab", "1792195205", "cpu=1", "billing=2,cpu=1", "", "", "", ""];
    let used = "cpu=00:00:07,energy=0,fs/disk=12,mem=4096,pages=0,vmem=4096";
    let step = ["70.batch", "lab", "1792195206", "", "cpu=1", "00:00:07", "4096", used, used];
    let used = "cpu=00:00:09,energy=0,fs/disk=5,mem=8192,pages=1,vmem=9000";
    let given = "billing=2,cpu=1";
    let next = ["70.0", "lab", "1792195206", "", given, "00:09.120", "8192", used, "cpu=1"];
    let rows = [row("70", own), row("70.batch", step), row("70.0", next)];
    let (phrases, text) = there_and_back(&rows).unwrap();
    let steps = [
        "\x1cbatch\x1f\x1d\x1f\x1e\x1f\x1a\x1f\x1f\x1c\x1f\x1a2\x1f\x1c\x1f\x1d\x1f\x1b",
        "\x1c0\x1f\x1d\x1f\x1e\x1f\x1e\x1f\x1f\x19\x1f\x1a2\x1f\x1c\x1f\x1a\x1f\x1b",
    ];
    let expected = [
        "lab\x1f",
        "\x1c\x1f\x1d\x1f\x1c\x1f\x1a\x1f\x1f\x1f\x1f",
        "cpu=1\x1fbilling=2,cpu=1\x1f",
        &steps.concat(),
    ];
    assert_eq!(phrases, expected);
    let own = ["", "1792195206", "00:00:07", "4096", ",12,0,", "00:09.120", "8192"];
    let own = own.join("\x1f") + "\x1f00:00:09,5,1,9000\x1fcpu=1\x1f";
    assert_eq!(text, own);
}

/// A row of all fields that sacct may know, in which some say something.
fn full_row(id: &str, said: &[(Field, &str)]) -> String {
    let text = |field: &Field| match field {
        Field::JobIdRaw | Field::JobId => id,
        field => said.iter().find(|(said, _)| said == field).map_or("", |(_, text)| text),
    };
    let fields: Vec<&str> = Field::ALL.iter().map(text).chain([id]).collect();
    fields.join("\x1f")
}

#[test]
fn what_steps_have_in_common_is_said_with_one_mark_unless_a_part_of_it_differs() {
    let layout = Layout::new(|_| true);
    let own = full_row("70", &[(Field::User, "ann"), (Field::Account, "lab")]);
    let step = |id, state, start| {
        let said = [(Field::Account, "lab"), (Field::State, state), (Field::Start, start)];
        full_row(id, &said)
    };
    let done = "COMPLETED";
    let rows = [own, step("70.0", done, "5"), step("70.1", done, "5"), step("70.2", "FAILED", "5")];
    let (phrases, _) = there_and_back_of(&layout, &rows).unwrap();
    let steps: Vec<&str> = phrases[3].split_inclusive('\x1b').collect();
    // Whose and how, ten fields; the times, five.
    assert!(steps[1].starts_with("\x1c1\x1f\x1d\x1f\x1e:\x1f\x1e5\x1f"), "{:?}", steps[1]);
    let failed = "\x1c2\x1f\x1d\x1f\x1f\x1f\x1f\x1f\x1e\x1f\x1f\x1fFAILED\x1f\x1f\x1f\x1e5\x1f";
    assert!(steps[2].starts_with(failed), "{:?}", steps[2]);
    let later = [rows[0].clone(), rows[1].clone(), step("70.1", done, "6")];
    let (phrases, text) = there_and_back_of(&layout, &later).unwrap();
    assert!(phrases[3].contains("\x1e:\x1f\x1f\x1f\x1a\x1f\x1f\x1f"), "{:?}", phrases[3]);
    assert!(text.contains("6\x1f"), "{text:?}");
}

#[test]
fn runs_that_differ_in_figures_alone_have_the_same_phrases() {
    let rows = |id: u32, cpu: &str, used: &str| {
        let (own, step) = (id.to_string(), format!("{id}.batch"));
        let used = format!("cpu={cpu},energy=0,fs/disk={used},mem={used},pages=0,vmem=1{used}");
        let fields = [&*step, "lab", "5", "", "cpu=1", cpu, &used[..0], &used, &used];
        [row(&own, [&own, "lab", "5", "c", "cpu=1", cpu, "", "", ""]), row(&step, fields)]
    };
    let one = there_and_back(&rows(70, "00:01:07", "12")).unwrap();
    let other = there_and_back(&rows(70, "3-00:00:00", "4711")).unwrap();
    assert_eq!(one.0, other.0);
    assert_ne!(one.1, other.1);
}

#[test]
fn what_several_tasks_used_is_said_in_figures_too() {
    let own = row("70", ["70", "", "1", "", "", "", "", "", ""]);
    let all = "cpu=00:00:07,energy=0,fs/disk=12,mem=9000,pages=3,vmem=9000";
    let one = "cpu=00:00:05,energy=0,fs/disk=8,mem=4096,pages=0,vmem=5000";
    let step = row("70.0", ["70.0", "", "1", "", "", "00:00:07", "4096", all, one]);
    let (phrases, text) = there_and_back(&[own, step]).unwrap();
    assert!(phrases[3].ends_with("\x1a2\x1f\x1c\x1f\x1c\x1f\x1b"), "{phrases:?}");
    assert!(text.contains("4096\x1f,12,9000,3,\x1f00:00:05,8,0,5000\x1f"), "{text:?}");
}

#[test]
fn a_list_that_is_not_the_usual_one_is_kept_as_it_is() {
    for used in [
        "cpu=00:00:07,energy=3,fs/disk=12,mem=4096,pages=0,vmem=4096",
        "cpu=00:00:07,energy=0,fs/disk=12,gres/gpumem=1,mem=4096,pages=0,vmem=4096",
        "cpu=00:00:07,energy=0,fs/disk=12,mem=4096,pages=0,vmem=4096,x=1",
        "cpu=,energy=0,fs/disk=,mem=4096,pages=,vmem=",
        "cpu=00:00:07,energy=0,fs/disk=12,mem=4096,pages=0,vmem=",
    ] {
        let own = row("70", ["70", "", "1", "", "", "", "", "", ""]);
        let step = row("70.0", ["70.0", "", "1", "", "", "00:00:07", "4096", used, "x"]);
        assert!(there_and_back(&[own, step]).unwrap().1.contains(used), "{used}");
    }
}

#[test]
fn a_number_that_is_written_otherwise_than_the_key_is_kept_as_it_is() {
    let rows = [row("070", ["70", "lab", "01792195205", "", "", "", "", "", ""])];
    let (phrases, text) = there_and_back(&rows).unwrap();
    assert!(phrases[1].starts_with("070\x1f") && text.contains("01792195205"), "{phrases:?}");
    let steps = [rows[0].clone(), row("070.0", ["70.0", "lab", "1", "", "", "", "", "", ""])];
    assert!(there_and_back(&steps).unwrap().0[3].starts_with("070.0\x1f"));
}

#[test]
fn a_row_that_holds_a_mark_is_not_shortened() {
    let own = row("70", ["70", "a", "1", "b", "c", "", "", "", ""]);
    for mark in ["\x19", "\x1a", "\x1b", "\x1c", "\x1d", "\x1e", "x\x1ey"] {
        let step = row("70.0", ["70.0", mark, "1", "b", "c", "", "", "", ""]);
        assert_eq!(there_and_back(&[own.clone(), step]), None, "{mark:?}");
    }
}

#[test]
fn a_mark_that_points_to_nothing_is_damage() {
    let places = &Places::of(&layout());
    let how = "70\x1f70\x1f1\x1f\x1f\x1f\x1f\x1f";
    let good = ["lab\x1f", how, "a\x1fb\x1f", "\x1c0\x1f\x1e9\x1f\x1b"];
    let read = |phrases: [&str; PHRASES], text: &str| {
        let (mut out, mut ends) = (b"before".to_vec(), vec![7]);
        let (phrases, text) = (phrases.map(str::as_bytes), text.as_bytes());
        let short = Short { phrases, figures: None, text };
        let done = short_read(&mut out, &mut ends, short, &key(), places);
        assert!(done.is_some() || (out == b"before" && ends == [7]), "{phrases:?}");
        done
    };
    assert_eq!(read(good, ""), Some(()));
    let bad_first = [
        "70\x1f\x1a\x1f1\x1f\x1f\x1f\x1f\x1f",
        "\x1d\x1f70\x1f1\x1f\x1f\x1f\x1f\x1f",
        "70\x1f\x1c\x1f1\x1f\x1f\x1f\x1f\x1f",
        "70\x1f70\x1f1",
        "",
    ];
    for how in bad_first {
        assert_eq!(read([good[0], how, good[2], good[3]], ""), None, "{how:?}");
    }
    let bad_steps = [
        "\x1c0\x1f\x1e9\x1f",
        "\x1c0\x1f\x1e8\x1f\x1b",
        "\x1c0\x1f\x1e:\x1f\x1b",
        "\x1c0\x1f\x1e9\x1f\x1f\x1b",
        "\x1c0\x1f\x1e7\x1f\x1c\x1f\x1e\x1f\x1b",
        "\x1c0\x1f\x1e8\x1f\x1a\x1f\x1b",
        "\x1d\x1f\x1e9\x1f\x1b",
    ];
    for steps in bad_steps {
        assert_eq!(read([good[0], good[1], good[2], steps], ""), None, "{steps:?}");
    }
    assert_eq!(read(good, "left over\x1f"), None);
}

/// A small generator of its own: which rows come does not matter, that they are many does.
#[test]
fn any_rows_come_back_as_they_were() {
    let mut seed = 7_u64;
    let mut next = |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 33) % below
    };
    let words = [
        "",
        "a",
        "lab",
        "1792195205",
        "70.1",
        "00:00:07",
        "4096",
        "70.2",
        "billing=3,lab",
        "é",
        "\n",
        "labs",
        "cpu=00:00:07,energy=0,fs/disk=12,mem=4096,pages=0,vmem=4096",
        "cpu=1,energy=0,fs/disk=12,mem=lab,pages=0,vmem=a",
    ];
    let every = Layout::new(|_| true);
    for _ in 0..1000 {
        // Few words, so that fields side by side are the same now and then.
        let mut word = || ["", "", "", "lab"][usize::try_from(next(4)).unwrap()];
        let rows = ["70", "70.batch", "70.0", "70.1"].map(|id| {
            let said: Vec<(Field, &str)> =
                Field::ALL.iter().map(|field| (*field, word())).collect();
            full_row(id, &said)
        });
        assert!(there_and_back_of(&every, &rows).is_some());
    }
    let mut said = 0;
    for _ in 0..3000 {
        let rows: Vec<String> = (0..=next(4))
            .map(|step| {
                let mut word = || words[usize::try_from(next(14)).unwrap()];
                let id = if step == 0 { "70".to_owned() } else { format!("70.{step}") };
                let fields = [(); 9].map(|()| word());
                row(&id, fields)
            })
            .collect();
        said += u32::from(there_and_back(&rows).is_some());
    }
    assert_eq!(said, 3000);
}

/// A run of a job and a step of two tasks, with something in most fields.
fn told() -> [String; 2] {
    let own = [
        (Field::Cluster, "lab"),
        (Field::User, "ann"),
        (Field::Uid, "1001"),
        (Field::State, "COMPLETED"),
        (Field::Submit, "1792195205"),
        (Field::Eligible, "1792195205"),
        (Field::Start, "1792195206"),
        (Field::End, "1792195299"),
        (Field::Elapsed, "93"),
        (Field::Timelimit, "UNLIMITED"),
        (Field::NodeList, "n[1-2]"),
        (Field::ReqMem, "8G"),
        (Field::AllocTres, "billing=2,cpu=2"),
        (Field::TotalCpu, "01:02.003"),
        (Field::Priority, "4711"),
        (Field::JobName, "a name"),
        (Field::WorkDir, "/home/ann"),
    ];
    let all = "cpu=00:01:02,energy=0,fs/disk=12,mem=9000,pages=3,vmem=9000";
    let one = "cpu=00:00:40,energy=0,fs/disk=8,mem=5000K,pages=0,vmem=5100K";
    let step = [
        (Field::Cluster, "lab"),
        (Field::State, "COMPLETED"),
        (Field::Submit, "1792195206"),
        (Field::Start, "1792195206"),
        (Field::End, "1792195299"),
        (Field::Elapsed, "93"),
        (Field::AllocTres, "cpu=2"),
        (Field::NTasks, "2"),
        (Field::TotalCpu, "01:02.003"),
        (Field::UserCpu, "01:01.000"),
        (Field::MaxRss, "5000K"),
        (Field::TresUsageInTot, all),
        (Field::TresUsageInMax, one),
        (Field::TresUsageOutTot, "energy=0,fs/disk=77"),
        (Field::JobName, "0"),
        (Field::SubmitLine, "srun -n2 ./a"),
    ];
    [full_row("70", &own), full_row("70.0", &step)]
}

/// The bytes are those that were written for it when the format was made: they must be read for years,
/// whatever is written by then.
#[test]
fn what_was_written_by_an_earlier_program_is_read_as_it_was() {
    let phrases: Phrases<'_> = [
        b"lab\x1fann\x1f1001\x1f\x1f\x1f",
        b"\x1c\x1f\x1d\x1f\x1f\x1fCOMPLETED\x1f\x1f\x1f\x1c\x1f\x1d\x1f\x1a\x1f\x1c\x1f\x1a\x1f\x1f\x1a\x1f\
          \x1a\x1f\x1f\x1a3\x1f\x1f\x1f\x1f\x1f\x1a2\x1f\x1f\x1f\x1f\x1f\x1f\x1a5\x1f",
        b"\x1f\x1f\x1f\x1f8G\x1f\x1fbilling=2,cpu=2\x1f",
        b"\x1c0\x1f\x1d\x1flab\x1f\x1f\x1f\x1f\x1f\x1f\x1fCOMPLETED\x1f\x1f\x1f\x1c\x1f\x1f\x1e3\x1f\x1f\
          \x1f\x1f\x1f\x1f\x1e2\x1f\x1f\x1f\x1c\x1f2\x1f\x1a4\x1f\x1c\x1f\x1c\x1f\x1c\x1f\x1f\x1f\x1f\
          \x1f\x1f\x1f\x1f\x1c\x1f\x1f\x1f\x1f\x1a\x1f\x1b",
    ];
    let figures = b"q)\x91%`\x9f\xf3\x10\n\xe2\x00\xf3\xffO\x17\xf1\x10\n\xe2\x00\xf3\x10\n\xe1\x00\xf0_\x00\
                    \xb0\x0f\xa0\x10\n\xc2!\x9c\x00\xc0\xc3\x0f\xa0\x00J\xc0\xc8\xc0\x15\x00\xfbw\xff";
    let text = b"UNLIMITED\x1fn[1-2]\x1fa name\x1f/home/ann\x1f\x1f\x1f\x1fsrun -n2 ./a\x1f";
    let short = Short { phrases, figures: Some(figures), text };
    let key = Key { end: Some(Timestamp::new(1_792_195_299)), ..key() };
    let (mut back, mut ends) = (Vec::new(), Vec::new());
    read(&mut back, &mut ends, short, &key, &Places::of(&Layout::new(|_| true))).unwrap();
    assert_eq!(String::from_utf8(back).unwrap(), told().join("\n") + "\n");
}

#[test]
fn layouts_that_lack_what_a_list_is_compared_with_come_back_too() {
    for lacking in [Field::TotalCpu, Field::MaxRss] {
        let layout = Layout::new(|field| field != lacking);
        let rows = told().map(|row| {
            let place = Field::ALL.iter().position(|field| *field == lacking).unwrap();
            let fields = row.split('\x1f').enumerate().filter(|(at, _)| *at != place);
            fields.map(|(_, field)| field).collect::<Vec<_>>().join("\x1f")
        });
        assert!(there_and_back_of(&layout, &rows).is_some(), "{lacking:?}");
    }
}

#[test]
fn what_else_a_step_wrote_is_no_figure() {
    let layout = Layout::new(|_| true);
    let wrote = "energy=0,fs/disk=12,fs/lustre=34";
    let rows = [full_row("70", &[]), full_row("70.0", &[(Field::TresUsageOutTot, wrote)])];
    let (phrases, text) = there_and_back_of(&layout, &rows).unwrap();
    assert!(phrases[3].contains('\x1a') && text.contains(wrote), "{phrases:?} {text:?}");
}

#[test]
fn figures_of_a_job_without_a_time_stand_in_its_text_with_or_without_steps() {
    let layout = Layout::new(|_| true);
    let time = "1792195206";
    for (start, end) in [("None", "Unknown"), (time, "Unknown"), ("Unknown", time), (time, time)] {
        let said = [(Field::Start, start), (Field::End, end), (Field::TotalCpu, "01:02.003")];
        for ids in [&["70"][..], &["70", "70.batch"], &["70", "70.batch", "70.0"]] {
            let rows: Vec<String> = ids.iter().map(|id| full_row(id, &said)).collect();
            let (_, own) = there_and_back_of(&layout, &rows).unwrap();
            let is_packed = start == time && end == time;
            // Words that are empty, the time limit and the nodes, stand between figures only there.
            let between = if is_packed { "" } else { "\x1f\x1f" };
            let expected = format!("{start}\x1f{end}\x1f\x1f{between}01:02.003\x1f");
            assert!(own.starts_with(&expected), "{own:?}");
        }
    }
}

/// What a list is cut into must not depend on whether much or nothing stands behind it, nor on how long
/// its figures are.
#[test]
fn lists_of_what_was_used_are_cut_in_the_same_way_wherever_they_stand() {
    let long = "123456789012345678901234567890";
    for [cpu, disk, memory, pages, more] in [
        ["00:00:07", "12", "4096", "0", "4096"],
        ["1", "2", "3", "4", "5"],
        [long, long, long, long, long],
        ["00:00:07", "12", "4096", "0", long],
        ["1234567890123456", "12", "123456789012345", "0", "1234567890123456"],
    ] {
        let used =
            format!("cpu={cpu},energy=0,fs/disk={disk},mem={memory},pages={pages},vmem={more}");
        for last in ["", "x", long] {
            let own = row("70", ["70", "", "1", "", "", "", "", "", ""]);
            let step = row("70.0", ["70.0", "", "1", "", "", "", "", &used, last]);
            let (phrases, own) = there_and_back(&[own, step]).unwrap();
            assert!(phrases[3].contains("\x1a2\x1f\x1c\x1f"), "{used} {phrases:?}");
            let virtual_memory = if more == memory { "" } else { more };
            let expected = format!("{cpu},{disk},{memory},{pages},{virtual_memory}\x1f");
            assert!(own.contains(&expected), "{used} {own:?}");
        }
    }
}
