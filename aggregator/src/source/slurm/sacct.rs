//! sacct: asked for the jobs of a stretch of time, or for jobs by number.

use std::io::Read;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use steward_common::id::ClusterName;
use steward_common::slurm::sacct::{DELIMITER, Field, Layout};
use steward_common::slurm::state::JobState;
use steward_common::time::Timestamp;
use steward_common::visible::visible;
use steward_common::window::Window;

use super::command::{CommandError, Running, TEXT};
use super::lines::{Lines, Piece};
use super::seal::Seal;
use super::turns::{InTurn, Turns};

/// Pins what sacct would take from its surroundings: words are English. How times are printed is
/// up to the [`Seal`] of the call.
const ENVIRONMENT: &[(&str, &str)] =
    &[("TZ", "UTC"), ("LC_ALL", "C.UTF-8"), ("SACCT_FORMAT", ""), ("SLURM_BITSTR_LEN", "0")];

/// The same for an answer in JSON, where times are numbers anyway: Slurm 22.05 reads its own default
/// times in this format, cannot read seconds, and then answers without jobs and without an error.
const JSON_ENVIRONMENT: &[(&str, &str)] =
    &[("TZ", "UTC"), ("SLURM_TIME_FORMAT", "standard"), ("LC_ALL", "C.UTF-8")];

/// States of jobs that may have ended before they were allowed to run.
const NEVER_RAN: &str = "CANCELLED,DEADLINE";

/// Without these there are no runs.
const NEEDED: [Field; 6] =
    [Field::JobIdRaw, Field::JobId, Field::State, Field::Submit, Field::Start, Field::End];

/// How long sacct may take to say what it knows.
const HELP_LIMIT: Duration = Duration::from_secs(30);

/// What it says of itself is not a hundredth of this.
const HELP: u64 = 1 << 20;

/// Says whether to stop.
pub type Stop = Arc<dyn Fn() -> bool + Send + Sync>;

/// How sacct is called.
#[derive(Clone)]
pub struct Sacct {
    argv: Vec<String>,
    cluster: Option<ClusterName>,
    limit: Duration,
    stop: Stop,
    turns: Arc<Turns>,
    /// What was last logged of its complaints.
    told: Arc<Mutex<String>>,
}

/// A call that failed, or a visitor that did.
pub enum Failure<E> {
    /// The call.
    Call(CommandError),
    /// The visitor.
    Visit(E),
}

impl<E> From<std::io::Error> for Failure<E> {
    fn from(source: std::io::Error) -> Self {
        Failure::Call(CommandError::Unreadable { command: "sacct".to_owned(), source })
    }
}

impl<E> From<CommandError> for Failure<E> {
    fn from(error: CommandError) -> Self {
        Failure::Call(error)
    }
}

impl Sacct {
    /// The command `argv`, which stands for sacct, about a cluster or about the local one.
    #[must_use]
    pub fn new(argv: &[String], cluster: Option<ClusterName>, limit: Duration, stop: Stop) -> Self {
        let (turns, told) = (Arc::default(), Arc::default());
        Self { argv: argv.to_vec(), cluster, limit, stop, turns, told }
    }

    fn start(
        &self,
        arguments: &[String],
        environment: &[(&str, &str)],
        limit: Duration,
    ) -> Result<Running, CommandError> {
        let argv: Vec<String> = self.argv.iter().chain(arguments).cloned().collect();
        let stop = Arc::clone(&self.stop);
        Running::start(&argv, environment, limit, move || stop())
    }

    fn text(
        &self,
        arguments: &[String],
        environment: &[(&str, &str)],
        limit: Duration,
        most: u64,
    ) -> Result<String, CommandError> {
        let bytes = self.start(arguments, environment, limit)?.text(most)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Waits, unless we are told to stop.
    ///
    /// # Errors
    /// If we are.
    pub fn pause(&self, time: Duration) -> Result<(), CommandError> {
        let until = Instant::now() + time;
        while Instant::now() < until {
            if (self.stop)() {
                return Err(CommandError::Stopped);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    /// The fields that this sacct knows.
    ///
    /// # Errors
    /// If it does not answer.
    pub fn fields(&self) -> Result<Layout, CommandError> {
        Ok(Layout::of_help(&self.text(
            &["--helpformat".to_owned()],
            ENVIRONMENT,
            HELP_LIMIT.min(self.limit),
            HELP,
        )?))
    }

    /// The same, for who wants jobs.
    ///
    /// # Errors
    /// If it does not answer, or knows too little to tell one job from another: then it is no sacct,
    /// and that it names no jobs does not mean that there are none.
    pub fn layout(&self) -> Result<Layout, CommandError> {
        let layout = self.fields()?;
        let lacking = NEEDED.iter().find(|field| layout.place(**field).is_none());
        let Some(field) = lacking else { return Ok(layout) };
        let why =
            format!("--helpformat does not name {}; slurm.sacct must be a sacct", field.name());
        let source = std::io::Error::new(std::io::ErrorKind::InvalidData, why);
        Err(CommandError::Unreadable { command: self.argv.join(" "), source })
    }

    /// What `sacct --version` says.
    ///
    /// # Errors
    /// If it does not answer.
    pub fn version(&self) -> Result<String, CommandError> {
        Ok(self
            .text(&["--version".to_owned()], ENVIRONMENT, HELP_LIMIT.min(self.limit), HELP)?
            .trim()
            .to_owned())
    }

    fn arguments(&self, layout: &Layout) -> Vec<String> {
        let mut arguments: Vec<String> =
            ["--duplicates", "--parsable2", "--noheader", "--noconvert"]
                .map(str::to_owned)
                .to_vec();
        arguments.push(format!("--delimiter={}", char::from(DELIMITER)));
        arguments.push(format!("--format={}", layout.format()));
        arguments.push(self.of_cluster());
        arguments
    }

    /// Which cluster is meant. Left to itself, sacct of a federation tells of all its clusters, whose
    /// jobs may have the same numbers.
    fn of_cluster(&self) -> String {
        match &self.cluster {
            Some(cluster) => format!("--clusters={cluster}"),
            None => "--local".to_owned(),
        }
    }

    /// Shows `visit` every job that was waiting or running in the window, or ended in it, but for some
    /// that [never ran](Sacct::never_ran).
    ///
    /// Asked for a window, sacct leaves out steps that ended before it began, and does not count them in
    /// the job's CPU time either. [By number](Sacct::runs_of) it tells all.
    ///
    /// # Errors
    /// If the call or the visitor fails; some jobs may have been shown by then.
    pub fn jobs<E>(
        &self,
        layout: &Layout,
        window: Window,
        visit: impl FnMut(Piece<'_>) -> Result<(), Failure<E>>,
    ) -> Result<(), Failure<E>> {
        self.read(layout, &self.of_window(layout, window), visit)
    }

    /// Shows `visit` every job of the window that may have ended without having run; most of them are
    /// among its [jobs](Sacct::jobs), too.
    ///
    /// Left to itself sacct leaves out a job that ended before it was allowed to run: one that was
    /// held, or had a time to begin at, and was cancelled. Asked by their state it tells of them. Slurm
    /// 22.05 looks at deadlines when a job may run, and not before; that need not stay so.
    ///
    /// # Errors
    /// If the call or the visitor fails; some jobs may have been shown by then.
    pub fn never_ran<E>(
        &self,
        layout: &Layout,
        window: Window,
        visit: impl FnMut(Piece<'_>) -> Result<(), Failure<E>>,
    ) -> Result<(), Failure<E>> {
        self.of_states(layout, window, NEVER_RAN, visit)
    }

    /// Shows `visit` every run that ended in the window, whether it ran or not, and no other.
    ///
    /// # Errors
    /// If the call or the visitor fails; some jobs may have been shown by then.
    pub fn ended<E>(
        &self,
        layout: &Layout,
        window: Window,
        visit: impl FnMut(Piece<'_>) -> Result<(), Failure<E>>,
    ) -> Result<(), Failure<E>> {
        let states: Vec<String> = JobState::of_past_runs().map(|state| state.to_string()).collect();
        self.of_states(layout, window, &states.join(","), visit)
    }

    fn of_states<E>(
        &self,
        layout: &Layout,
        window: Window,
        states: &str,
        visit: impl FnMut(Piece<'_>) -> Result<(), Failure<E>>,
    ) -> Result<(), Failure<E>> {
        let mut arguments = self.of_window(layout, window);
        arguments.push(format!("--state={states}"));
        self.read(layout, &arguments, visit)
    }

    fn of_window(&self, layout: &Layout, window: Window) -> Vec<String> {
        let mut arguments = self.arguments(layout);
        arguments.push("--allusers".to_owned());
        arguments.push(format!("--starttime={}", utc(window.from())));
        arguments.push(format!("--endtime={}", utc(window.to())));
        arguments
    }

    /// Shows `visit` every run of these jobs, whenever it was.
    ///
    /// # Errors
    /// If the call or the visitor fails.
    pub fn runs_of<E>(
        &self,
        layout: &Layout,
        jobs: &[u32],
        visit: impl FnMut(Piece<'_>) -> Result<(), Failure<E>>,
    ) -> Result<(), Failure<E>> {
        let mut arguments = self.arguments(layout);
        arguments.push(by_number(jobs));
        self.read(layout, &arguments, visit)
    }

    /// All that sacct says about jobs, as JSON: there every text is whole.
    ///
    /// # Errors
    /// If it does not answer.
    pub fn json(&self, jobs: &[u32]) -> Result<String, CommandError> {
        let mut arguments = vec!["--json".to_owned(), "--duplicates".to_owned()];
        arguments.push(by_number(jobs));
        arguments.push(self.of_cluster());
        self.text(&arguments, JSON_ENVIRONMENT, self.limit, TEXT)
    }

    /// Logs what a call complained about that did not fail, unless the one before said the same: a
    /// collection is many calls, and a line of slurm.conf that Slurm does not like comes with each.
    fn tell(&self, complaint: String) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if !complaint.is_empty() && *told != complaint {
            tracing::warn!(complaint = %visible(&complaint), "sacct answered, but complained");
            *told = complaint;
        }
    }

    fn read<E>(
        &self,
        layout: &Layout,
        arguments: &[String],
        visit: impl FnMut(Piece<'_>) -> Result<(), Failure<E>>,
    ) -> Result<(), Failure<E>> {
        let seal = Seal::random()?;
        let times = seal.time_format();
        let environment = [ENVIRONMENT, &[("SLURM_TIME_FORMAT", times.as_str())]].concat();
        let mut running = self.start(arguments, &environment, self.limit)?;
        let answer = running.answer().map(|answer| InTurn::new(answer, &self.turns));
        let mut answer = answer.map(|answer| Whole { answer, last: b'\n' });
        if let Some(answer) = &mut answer
            && let Err(failure) = Lines::new(layout, &seal).read(&mut *answer, visit)
        {
            return Err(match (failure, running.give_up()) {
                (Failure::Call(_), Some(ended)) => ended.into(),
                (failure, _) => failure,
            });
        }
        self.tell(running.finish()?);
        if answer.is_none_or(|answer| answer.last == b'\n') {
            return Ok(());
        }
        // Whoever stands for sacct did not hand all of its answer on, and does not know it.
        let why = "its answer ends within a row; see that slurm.sacct hands on all of it";
        Err(std::io::Error::new(std::io::ErrorKind::UnexpectedEof, why).into())
    }
}

/// An answer of which one knows whether it ended with a line.
struct Whole<R> {
    answer: R,
    last: u8,
}

impl<R: Read> Read for Whole<R> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let read = self.answer.read(into)?;
        if let Some(last) = read.checked_sub(1).and_then(|last| into.get(last)) {
            self.last = *last;
        }
        Ok(read)
    }
}

fn by_number(jobs: &[u32]) -> String {
    let numbers: Vec<String> = jobs.iter().map(u32::to_string).collect();
    format!("--jobs={}", numbers.join(","))
}

/// A moment as sacct reads it, in the zone that [`ENVIRONMENT`] names.
fn utc(moment: Timestamp) -> String {
    match jiff::Timestamp::from_second(moment.get()) {
        Ok(time) => time.strftime("%Y-%m-%dT%H:%M:%S").to_string(),
        // Beyond the year 9999, as far as any program is concerned: the end of time.
        Err(_) => "9999-12-31T23:59:59".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{self, Write};

    use super::*;

    fn layout() -> Layout {
        Layout::new(|field| matches!(field, Field::JobIdRaw | Field::Submit | Field::JobName))
    }

    /// A shell script as sacct, and what became of a call of it.
    fn sacct(script: &str, limit: Duration) -> Sacct {
        let argv = ["sh", "-c", script].map(str::to_owned);
        Sacct::new(&argv, None, limit, Arc::new(|| false))
    }

    fn asked(sacct: &Sacct) -> Result<(), String> {
        sacct.runs_of(&layout(), &[1], |_| Ok::<(), Failure<String>>(())).map_err(|failure| {
            match failure {
                Failure::Call(error) => error.to_string(),
                Failure::Visit(error) => error,
            }
        })
    }

    #[test]
    fn an_answer_that_was_cut_short_is_not_blamed_for_what_it_lacks() {
        let cut = r"printf '1\0377\037'; setsid sleep 25";
        let error = asked(&sacct(cut, Duration::from_secs(1))).unwrap_err();
        assert!(error.contains("no end after 1 s"), "{error}");
        let error = asked(&sacct(r"printf '1\0377\037a\0371\n'", Duration::from_secs(25)));
        assert!(error.unwrap_err().contains("must pass its environment on"));
    }

    #[test]
    fn whoever_never_ends_a_row_is_no_sacct() {
        let yes = sacct("yes aaaa | tr -d '\\n'", Duration::from_secs(25));
        let error = asked(&yes).unwrap_err();
        assert!(
            error.starts_with("sacct: a row of 1 MiB or more: it begins with 'aaaa"),
            "{error}"
        );
        let error = yes.fields().unwrap_err().to_string();
        assert!(error.contains("more than 1048576 bytes: it begins with 'aaaa"), "{error}");
    }

    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);

    impl Write for Log {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_sacct_complains_about_is_logged_once_though_it_answers() {
        let log = Log::default();
        let to = log.clone();
        let subscriber =
            tracing_subscriber::fmt().with_ansi(false).with_writer(move || to.clone()).finish();
        tracing::subscriber::with_default(subscriber, || {
            let odd = sacct(r"printf 'error: \033[2J\nkey\n' >&2", Duration::from_secs(25));
            asked(&odd).unwrap();
            asked(&odd.clone()).unwrap();
            asked(&sacct("true", Duration::from_secs(25))).unwrap();
        });
        let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
        assert_eq!(log.lines().count(), 1, "{log}");
        assert!(log.contains("WARN") && log.contains(r"error: \x1b[2J; key"), "{log}");
    }
}
