//! Asked for a window, sacct leaves out what of a run is not in it.

use std::fs;

use super::site::Site;
use crate::archive::Part;
use crate::archive::cells::whole;

/// Two runs that ended on the second day. One began on the first, and had a step then.
const WINDOW: &str = "7~7~bob~COMPLETED~100@~150@~90000@~b~7\n\
                      7.1~7.1~~COMPLETED~100@~86500@~90000@~one~7.1\n\
                      8~8~bob~COMPLETED~100@~86400@~86400@~c~8\n\
                      8.0~8.0~~COMPLETED~100@~86400@~86400@~one~8.0\n";
const BY_NUMBER: &str = "7~7~bob~COMPLETED~100@~150@~90000@~b~7\n\
                         7.0~7.0~~COMPLETED~100@~150@~86399@~zero~7.0\n\
                         7.1~7.1~~COMPLETED~100@~86500@~90000@~one~7.1\n";

impl Site {
    /// The runs that ended on the second day, and how many steps they had.
    fn steps(&self) -> Vec<(i64, i64)> {
        let (archive, day) = (self.archive(), "1970-01-02".parse().unwrap());
        let entry = archive.manifest().unwrap().clusters["c1"].days[&day];
        let table = archive.open("c1", Part::Day(day), entry).unwrap().unwrap();
        let batch = table.batches(None, false).unwrap().next().unwrap().unwrap();
        let steps = whole(&batch, "job_id_raw").zip(whole(&batch, "steps"));
        let mut steps: Vec<_> = steps.map(|(job, steps)| (job.unwrap(), steps.unwrap())).collect();
        steps.sort_unstable();
        steps
    }
}

#[test]
fn a_run_that_began_before_the_window_is_asked_for_by_number() {
    // On the day of the end, and when that is long over.
    for now in [100_000, 300_000] {
        let site = Site::new();
        site.write("window", WINDOW);
        // Of other runs of the job, and of other jobs, the window has told, or will.
        let others = "7~7~bob~REQUEUED~50@~86401@~86402@~b~7\n9~9~bob~FAILED~50@~60@~70@~d~9\n";
        site.write("jobs", &format!("{others}{BY_NUMBER}"));
        site.collect(now);
        assert_eq!(site.steps(), [(7, 2), (8, 1)]);
        let calls = fs::read_to_string(site.path("calls")).unwrap();
        let mut numbers = calls.split_whitespace().filter_map(|word| word.strip_prefix("--jobs="));
        assert!(numbers.all(|jobs| jobs == "7"), "{calls}");
        assert_eq!(site.calls("jobs"), 1, "{calls}");
    }
}

#[test]
fn days_that_are_over_are_asked_for_what_ended_on_them() {
    let site = Site::new();
    site.collect(100_000);
    let calls = fs::read_to_string(site.path("calls")).unwrap();
    let states = |call: &str| {
        let states = call.split(" --state=").nth(1)?;
        Some(states.split(',').count())
    };
    let asked: Vec<_> = calls.lines().map(states).collect();
    assert_eq!(asked, [Some(12), None, Some(2)], "{calls}");
}

#[test]
fn a_run_that_is_not_found_by_its_number_is_kept_as_it_is_told() {
    let site = Site::new();
    site.write("window", WINDOW);
    assert_eq!(site.collect(100_000).runs, 2);
    assert_eq!((site.steps(), site.calls("jobs")), (vec![(7, 1), (8, 1)], 2));
    // It may be found when the day is asked for a last time.
    site.write("jobs", BY_NUMBER);
    assert_eq!(site.collect(180_000).runs, 1);
    assert_eq!(site.steps(), [(7, 2), (8, 1)]);
}

#[test]
fn of_an_array_those_are_taken_that_were_asked_for() {
    let site = Site::new();
    site.write("window", WINDOW);
    // It belongs to the window, which has not told of it.
    let other = "9~9~bob~COMPLETED~100@~150@~90000@~b~9\n";
    site.write("jobs", &format!("{BY_NUMBER}{other}"));
    site.collect(100_000);
    assert_eq!(site.steps(), [(7, 2), (8, 1)]);
}

#[test]
fn a_run_that_ends_while_sacct_is_asked_is_asked_for_by_number() {
    let site = Site::new();
    site.write("window", "7~7~bob~COMPLETED~87000@~87000@~90002@~b~7\n");
    site.write("jobs", &BY_NUMBER.replace("100@~150@~90000@", "87000@~87000@~90002@"));
    site.collect(90_000);
    assert_eq!(site.steps(), [(7, 2)]);
}
