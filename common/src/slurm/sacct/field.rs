//! The fields that are asked of sacct, in the order in which they are asked for.

/// Between two fields: the unit separator, which nobody types.
pub const DELIMITER: u8 = 0x1f;

macro_rules! fields {
    ($($(#[$doc:meta])* $variant:ident = $name:literal;)*) => {
        /// A column of sacct.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Field {
            $($(#[$doc])* $variant,)*
        }

        impl Field {
            /// Every field, in the order in which it is asked for.
            pub const ALL: &'static [Field] = &[$(Field::$variant,)*];

            /// What sacct calls it.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Field::$variant => $name,)*
                }
            }
        }
    };
}

fields! {
    /// Slurm's number of the job, with the step after a dot. Also stands at the end of the row.
    JobIdRaw = "JobIDRaw";
    /// The id that people see: `100_7`, `100+1`.
    JobId = "JobID";
    /// The cluster.
    Cluster = "Cluster";
    /// The owner's name.
    User = "User";
    /// The owner's number.
    Uid = "UID";
    /// The owner's Unix group.
    Group = "Group";
    /// The account that is charged.
    Account = "Account";
    /// The partition, or the list of those asked for.
    Partition = "Partition";
    /// The quality of service.
    Qos = "QOS";
    /// The state.
    State = "State";
    /// Exit code and signal, `1:0`.
    ExitCode = "ExitCode";
    /// The highest exit code of the steps.
    DerivedExitCode = "DerivedExitCode";
    /// When it was submitted.
    Submit = "Submit";
    /// From when it could run.
    Eligible = "Eligible";
    /// When it started.
    Start = "Start";
    /// When it ended.
    End = "End";
    /// How long it ran, in seconds, without the time it was suspended.
    Elapsed = "ElapsedRaw";
    /// How long it was suspended.
    Suspended = "Suspended";
    /// The time limit, in minutes.
    Timelimit = "TimelimitRaw";
    /// CPUs given.
    AllocCpus = "AllocCPUS";
    /// Nodes given.
    AllocNodes = "AllocNodes";
    /// The nodes given.
    NodeList = "NodeList";
    /// CPUs asked for.
    ReqCpus = "ReqCPUS";
    /// Nodes asked for.
    ReqNodes = "ReqNodes";
    /// Memory asked for.
    ReqMem = "ReqMem";
    /// All that was asked for.
    ReqTres = "ReqTRES";
    /// All that was given.
    AllocTres = "AllocTRES";
    /// Tasks of the step.
    NTasks = "NTasks";
    /// CPU time used.
    TotalCpu = "TotalCPU";
    /// CPU time used in user mode.
    UserCpu = "UserCPU";
    /// CPU time used in the kernel.
    SystemCpu = "SystemCPU";
    /// The most memory that one task of the step used.
    MaxRss = "MaxRSS";
    /// What all tasks of the step used together: for memory the sum of each task's highest.
    TresUsageInTot = "TRESUsageInTot";
    /// What the greediest task of the step used.
    TresUsageInMax = "TRESUsageInMax";
    /// What all tasks of the step wrote.
    TresUsageOutTot = "TRESUsageOutTot";
    /// Energy used, in joules.
    Energy = "ConsumedEnergyRaw";
    /// Priority when it started.
    Priority = "Priority";
    /// The reservation it ran in.
    Reservation = "Reservation";
    /// Why it waited last.
    Reason = "Reason";
    /// What scheduled it, and whether its start was a restart.
    Flags = "Flags";
    /// How often it was put back into the queue; newer Slurm only.
    Restarts = "Restarts";
    /// Features asked for. From here on the text is the user's, and may hold anything.
    Constraints = "Constraints";
    /// The name.
    JobName = "JobName";
    /// The directory it started in.
    WorkDir = "WorkDir";
    /// The user's comment.
    Comment = "Comment";
    /// The administrator's comment; Jobstats keeps its summary here.
    AdminComment = "AdminComment";
    /// The command line of the submission.
    SubmitLine = "SubmitLine";
}

impl Field {
    /// Whether the text is the user's own: it may hold line ends and delimiters.
    #[must_use]
    pub fn is_free_text(self) -> bool {
        self as usize >= Field::Constraints as usize
    }
}

/// The fields that one sacct knows, and where each stands in its rows.
///
/// A row ends with its JobIDRaw once more: a line that begins and ends with the same id and has
/// the right number of fields in between is a whole row, whatever the free text holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    fields: Vec<Field>,
    places: [u8; Field::ALL.len()],
}

/// The place of a field that this sacct does not know: no row is so wide.
const NOWHERE: u8 = u8::MAX;
const _: () = assert!(Field::ALL.len() < NOWHERE as usize);

impl Layout {
    /// A layout of the fields for which `known` holds.
    #[must_use]
    pub fn new(known: impl Fn(Field) -> bool) -> Layout {
        let fields: Vec<Field> = Field::ALL.iter().copied().filter(|field| known(*field)).collect();
        let mut places = [NOWHERE; Field::ALL.len()];
        for (place, field) in (0..).zip(&fields) {
            if let Some(slot) = places.get_mut(*field as usize) {
                *slot = place;
            }
        }
        Layout { fields, places }
    }

    /// The layout of the fields that stand in the text of `sacct --helpformat`.
    #[must_use]
    pub fn of_help(text: &str) -> Layout {
        let names: Vec<&str> = text.split_ascii_whitespace().collect();
        Layout::new(|field| names.iter().any(|name| name.eq_ignore_ascii_case(field.name())))
    }

    /// The layout with these names, as [`Layout::names`] gave them; `None` if one is not a field.
    #[must_use]
    pub fn of_names(names: &str) -> Option<Layout> {
        let names: Vec<&str> = names.split(',').collect();
        let known = |name: &&str| Field::ALL.iter().any(|field| field.name() == *name);
        names.iter().all(known).then(|| Layout::new(|field| names.contains(&field.name())))
    }

    /// The names of the fields, as sacct's `--format` takes them, without the closing id.
    #[must_use]
    pub fn names(&self) -> String {
        let names: Vec<&str> = self.fields.iter().map(|field| field.name()).collect();
        names.join(",")
    }

    /// What is given to `--format`: the names, and the id once more.
    #[must_use]
    pub fn format(&self) -> String {
        self.names() + "," + Field::JobIdRaw.name()
    }

    /// The fields, in order.
    #[must_use]
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// How many fields a row has, the closing id among them.
    #[must_use]
    #[inline]
    pub fn width(&self) -> usize {
        self.fields.len() + 1
    }

    /// Where the field stands; `None` if this sacct does not know it.
    #[must_use]
    #[inline]
    pub fn place(&self, field: Field) -> Option<usize> {
        let place = self.near(field);
        (place != usize::from(NOWHERE)).then_some(place)
    }

    /// Where the field stands; behind the end of every row if this sacct does not know it.
    #[inline]
    pub(super) fn near(&self, field: Field) -> usize {
        self.places.get(field as usize).map_or(usize::from(NOWHERE), |place| usize::from(*place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_that_sacct_does_not_know_is_left_out() {
        let all = Layout::new(|_| true);
        let older = Layout::new(|field| field != Field::Restarts);
        assert_eq!(older.width(), all.width() - 1);
        assert_eq!(older.place(Field::Restarts), None);
        assert_eq!(older.place(Field::Constraints), Some(Field::Constraints as usize - 1));
        assert!(older.format().ends_with(",SubmitLine,JobIDRaw"));
        assert_eq!(Layout::of_names(&older.names()), Some(older));
    }

    #[test]
    fn the_help_text_says_what_is_known() {
        let layout = Layout::of_help("JobID   JobIDRaw State\nsubmit    End\n");
        let expected = [Field::JobIdRaw, Field::JobId, Field::State, Field::Submit, Field::End];
        assert_eq!(layout.fields(), expected);
    }
}
