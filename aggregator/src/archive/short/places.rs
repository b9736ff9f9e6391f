//! Where the fields stand, and how each is written.

use steward_common::slurm::sacct::{Field, Layout};
use steward_common::time::Timestamp;

use super::{MOST, Phrase};
use crate::archive::raw::Key;

/// Fields of [`Phrase::Who`].
const WHO: &[Field] = &[Field::Cluster, Field::User, Field::Uid, Field::Group, Field::Account];

/// Fields of [`Phrase::Asked`].
const ASKED: &[Field] = &[
    Field::AllocCpus,
    Field::AllocNodes,
    Field::ReqCpus,
    Field::ReqNodes,
    Field::ReqMem,
    Field::ReqTres,
    Field::AllocTres,
];

/// Fields that are hardly ever the same in two runs.
const OWN: &[Field] = &[
    Field::JobId,
    Field::Submit,
    Field::Eligible,
    Field::Start,
    Field::End,
    Field::Elapsed,
    Field::Timelimit,
    Field::NodeList,
    Field::TotalCpu,
    Field::UserCpu,
    Field::SystemCpu,
    Field::MaxRss,
    Field::TresUsageInTot,
    Field::TresUsageInMax,
    Field::TresUsageOutTot,
    Field::Energy,
    Field::Priority,
    Field::JobName,
    Field::WorkDir,
    Field::Comment,
    Field::AdminComment,
    Field::SubmitLine,
];

/// Of those, the ones that are figures. Which they are is part of the format: a file with packed figures
/// is read by this list.
const FIGURES: &[Field] = &[
    Field::Submit,
    Field::Eligible,
    Field::Start,
    Field::End,
    Field::Elapsed,
    Field::TotalCpu,
    Field::UserCpu,
    Field::SystemCpu,
    Field::MaxRss,
    Field::Energy,
    Field::Priority,
];

/// Of its own, the ones of which a job's own row says nothing: only its steps use something.
const OF_STEPS: &[Field] =
    &[Field::MaxRss, Field::TresUsageInTot, Field::TresUsageInMax, Field::TresUsageOutTot];

/// Fields that, in a job's own row, often repeat what stands to their left.
const REPEATING: &[Field] = &[Field::JobId, Field::Eligible, Field::Start, Field::AllocTres];

/// Fields of a step that are compared with those of the row above: who many jobs have in common, but
/// not all, and times.
const COMPARED: &[Field] = &[
    Field::Account,
    Field::Submit,
    Field::Eligible,
    Field::Start,
    Field::End,
    Field::Elapsed,
    Field::AllocCpus,
    Field::AllocNodes,
    Field::NodeList,
    Field::ReqCpus,
    Field::ReqNodes,
    Field::ReqMem,
    Field::ReqTres,
    Field::AllocTres,
    Field::Energy,
    Field::Priority,
    Field::JobName,
    Field::WorkDir,
    Field::Comment,
    Field::AdminComment,
    Field::SubmitLine,
];

/// What may be known of a field of a step from elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// Nothing.
    Nothing,
    /// It is the job's number, a dot and the step, which stands behind the mark.
    Id,
    /// It is the id above and the step, or what stands to the left.
    Shown,
    /// It is when the job started.
    Submit,
    /// It is what stands to the left.
    Left,
    /// It is what the job was given, with what it is billed or without.
    Given,
    /// It is the step.
    Name,
    /// It is what stands to the left, or the usual list of what a step used; what other fields do not
    /// say of it is among the figures.
    Used,
    /// It is the usual list of what a step wrote, of which the figure is among the figures.
    Wrote,
}

fn known(field: Field) -> Known {
    match field {
        Field::JobIdRaw => Known::Id,
        Field::JobId => Known::Shown,
        Field::Submit => Known::Submit,
        Field::Eligible | Field::Start => Known::Left,
        Field::AllocTres => Known::Given,
        Field::JobName => Known::Name,
        Field::TresUsageInTot | Field::TresUsageInMax => Known::Used,
        Field::TresUsageOutTot => Known::Wrote,
        _ => Known::Nothing,
    }
}

/// How fields are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// As they are, into their phrase.
    Phrase,
    /// As they are, into what is the run's own.
    Own,
    /// With a look at what is known.
    Look,
}

fn way_of_job(field: Field) -> Way {
    let is_key = matches!(field, Field::JobIdRaw | Field::Submit | Field::End);
    if OF_STEPS.contains(&field) {
        Way::Phrase
    } else if is_key || REPEATING.contains(&field) {
        Way::Look
    } else if OWN.contains(&field) {
        Way::Own
    } else {
        Way::Phrase
    }
}

fn way_of_step(field: Field) -> Way {
    if COMPARED.contains(&field) || known(field) != Known::Nothing {
        Way::Look
    } else if OWN.contains(&field) && field != Field::Timelimit {
        Way::Own
    } else {
        Way::Phrase
    }
}

/// Fields that stand side by side and are written in the same way.
#[derive(Clone, Copy, Debug)]
pub struct Stretch {
    /// The place of the first.
    pub first: usize,
    /// The place of the last.
    pub last: usize,
    /// Their phrase.
    pub phrase: Phrase,
    /// How.
    pub way: Way,
    /// Whether they are figures.
    pub are_figures: bool,
    /// Whether one that is looked at is the run's own, unless more is found of it.
    pub is_own: bool,
    /// What may be known of one that is looked at in the row of a step.
    pub known: Known,
}

impl Stretch {
    /// How many.
    pub(super) fn count(&self) -> usize {
        self.last - self.first + 1
    }
}

/// A stretch of the row of a step, and how far it and those behind it often say, all together, what the
/// row above says.
#[derive(Clone, Copy, Debug)]
pub struct Bundle {
    /// The stretch.
    pub stretch: Stretch,
    /// How many stretches; 1 if it is by itself.
    pub stretches: usize,
    /// The place of their last field.
    pub last: usize,
    /// How many fields they have.
    pub count: usize,
}

/// Fields of a step that often are all the same as in the job's own row, or none is.
const BELOW_JOB: &[&[Field]] = &[
    &[Field::Start, Field::End, Field::Elapsed],
    &[Field::AllocCpus, Field::AllocNodes, Field::NodeList],
    &[Field::ReqCpus, Field::ReqNodes],
    &[Field::WorkDir, Field::Comment, Field::AdminComment],
];

/// Fields that steps mostly have in common.
const BELOW_STEP: &[&[Field]] = &[
    &[
        Field::Cluster,
        Field::User,
        Field::Uid,
        Field::Group,
        Field::Account,
        Field::Partition,
        Field::Qos,
        Field::State,
        Field::ExitCode,
        Field::DerivedExitCode,
    ],
    &[Field::Submit, Field::Eligible, Field::Start, Field::End, Field::Elapsed],
    &[
        Field::Suspended,
        Field::Timelimit,
        Field::AllocCpus,
        Field::AllocNodes,
        Field::NodeList,
        Field::ReqCpus,
        Field::ReqNodes,
        Field::ReqMem,
        Field::ReqTres,
    ],
    &[
        Field::Energy,
        Field::Priority,
        Field::Reservation,
        Field::Reason,
        Field::Flags,
        Field::Restarts,
        Field::Constraints,
    ],
    &[Field::WorkDir, Field::Comment, Field::AdminComment],
];

/// Fields that stand side by side and are written in the same way; those that are looked at are so
/// one by one.
fn stretches(
    fields: &[Field],
    phrase: impl Fn(Field) -> Phrase,
    way: impl Fn(Field) -> Way,
) -> Vec<Stretch> {
    let mut stretches: Vec<Stretch> = Vec::new();
    for (place, field) in fields.iter().enumerate() {
        let (phrase, way, are_figures) = (phrase(*field), way(*field), FIGURES.contains(field));
        let goes_on = |last: &Stretch| {
            let is_alike = (last.way, last.phrase) == (way, phrase)
                && (way == Way::Phrase || last.are_figures == are_figures);
            is_alike && way != Way::Look && last.count() < MOST
        };
        match stretches.last_mut().filter(|last| goes_on(last)) {
            Some(last) => last.last = place,
            None => {
                let known = known(*field);
                let is_own =
                    OWN.contains(field) || known == Known::Given && phrase == Phrase::Steps;
                let (first, last) = (place, place);
                stretches.push(Stretch { first, last, phrase, way, are_figures, is_own, known });
            }
        }
    }
    stretches
}

/// The stretches of the row of a step; those whose fields are in one of the groups, as one.
fn bundles(fields: &[Field], stretches: &[Stretch], groups: &[&[Field]]) -> Vec<Bundle> {
    let is_group = |first: usize, last: usize| {
        let fields = fields.get(first..=last).unwrap_or_default();
        groups.iter().any(|group| fields.iter().all(|field| group.contains(field)))
    };
    let mut bundles: Vec<Bundle> = Vec::new();
    // Where the first stretch of the group stands that may go on.
    let mut head = 0;
    for stretch in stretches {
        let (last, count) = (stretch.last, stretch.count());
        let alone = Bundle { stretch: *stretch, stretches: 1, last, count };
        match bundles.get_mut(head).filter(|head| is_group(head.stretch.first, last)) {
            Some(head) => {
                head.stretches += 1;
                (head.last, head.count) = (last, head.count + count);
            }
            None => head = bundles.len(),
        }
        bundles.push(alone);
    }
    bundles
}

/// Where the fields stand that are looked at.
#[derive(Clone, Debug)]
pub struct Places {
    pub(super) id: Option<usize>,
    pub(super) shown: Option<usize>,
    submit: Option<usize>,
    pub(super) start: Option<usize>,
    pub(super) end: Option<usize>,
    pub(super) given: Option<usize>,
    pub(super) cpu: Option<usize>,
    pub(super) memory: Option<usize>,
    /// Of each place in which phrase it stands in a job's own row.
    pub(super) phrases: Vec<Phrase>,
    /// Of each place what may be known of it in the row of a step.
    known: Vec<Known>,
    /// Of each place whether it is a figure.
    figures: Vec<bool>,
    /// Of each place whether, in a job's own row, it may repeat what stands to its left.
    repeating: Vec<bool>,
    /// A job's own row.
    pub(super) job: Vec<Stretch>,
    /// The row of a step below the job's own.
    pub(super) below_job: Vec<Bundle>,
    /// The row of a step below that of another one.
    pub(super) below_step: Vec<Bundle>,
}

impl Places {
    /// Those of a layout.
    #[must_use]
    pub fn of(layout: &Layout) -> Places {
        let fields = layout.fields();
        let each = |which: &[Field]| fields.iter().map(|field| which.contains(field)).collect();
        let step = stretches(fields, |_| Phrase::Steps, way_of_step);
        Places {
            id: layout.place(Field::JobIdRaw),
            shown: layout.place(Field::JobId),
            submit: layout.place(Field::Submit),
            start: layout.place(Field::Start),
            end: layout.place(Field::End),
            given: layout.place(Field::AllocTres),
            cpu: layout.place(Field::TotalCpu),
            memory: layout.place(Field::MaxRss),
            phrases: fields.iter().map(|field| phrase(*field)).collect(),
            known: fields.iter().map(|field| known(*field)).collect(),
            figures: each(FIGURES),
            repeating: each(REPEATING),
            job: stretches(fields, phrase, way_of_job),
            below_job: bundles(fields, &step, BELOW_JOB),
            below_step: bundles(fields, &step, BELOW_STEP),
        }
    }

    /// How many fields a row has, without the closing id.
    pub(super) fn width(&self) -> usize {
        self.phrases.len()
    }

    pub(super) fn known(&self, place: usize) -> Known {
        self.known.get(place).copied().unwrap_or(Known::Nothing)
    }

    pub(super) fn is_figure(&self, place: usize) -> bool {
        self.figures.get(place).is_some_and(|figure| *figure)
    }

    pub(super) fn repeats(&self, place: usize) -> bool {
        self.repeating.get(place).is_some_and(|repeats| *repeats)
    }

    /// What the key says of a field of the job's own row.
    pub(super) fn said(&self, key: &Key<'_>, place: usize) -> Option<i64> {
        if Some(place) == self.id {
            key.job.map(i64::from)
        } else if Some(place) == self.submit {
            key.submit.map(Timestamp::get)
        } else if Some(place) == self.end {
            key.end.map(Timestamp::get)
        } else {
            None
        }
    }
}

fn phrase(field: Field) -> Phrase {
    if WHO.contains(&field) {
        Phrase::Who
    } else if ASKED.contains(&field) {
        Phrase::Asked
    } else {
        Phrase::How
    }
}
