//! Mails on their way, each recipient on its own.
//!
//! ```text
//! planned ─> begun ─> sent
//!    ^         ├────> waiting ─> begun …   refused, or the server is down
//!    │         ├────> given-up             refused too often, or too old
//!    └─────────┴────> unknown              the program died, or the line broke, while it was handed over
//! ```
//!
//! Who turns a delivery to `begun` hands it over, nobody else. What is `begun` for long was left by a
//! program that died: nobody knows whether the server has it.

use sqlx::AnyConnection;
use steward_common::time::Timestamp;

use super::{Store, StoreError};

/// A mail that is to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mail {
    /// Its Message-ID.
    pub id: String,
    /// What it is: `digest`, `copy`, …
    pub kind: String,
    /// Whom it is about; empty if it is about nobody.
    pub about: String,
    /// Its subject.
    pub subject: String,
    /// The whole of it.
    pub text: String,
    /// To whom, each on its own.
    pub to: Vec<String>,
}

/// What has become of a mail to one recipient.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fate {
    /// It is to be sent.
    Planned,
    /// Somebody hands it over just now, or died while doing so.
    Begun,
    /// The server has it.
    Sent,
    /// It was refused for now, or the server was down; it is tried again.
    Waiting,
    /// It was refused too often.
    GivenUp,
    /// Nobody knows whether the server has it.
    Unknown,
}

impl Fate {
    const ALL: [Fate; 6] =
        [Fate::Planned, Fate::Begun, Fate::Sent, Fate::Waiting, Fate::GivenUp, Fate::Unknown];

    /// Its name in the store.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Fate::Planned => "planned",
            Fate::Begun => "begun",
            Fate::Sent => "sent",
            Fate::Waiting => "waiting",
            Fate::GivenUp => "given-up",
            Fate::Unknown => "unknown",
        }
    }

    fn of(name: &str) -> Fate {
        Fate::ALL.into_iter().find(|fate| fate.name() == name).unwrap_or(Fate::Unknown)
    }
}

/// A mail to one recipient.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The mail.
    pub message: String,
    /// What it is.
    pub kind: String,
    /// Whom it is about.
    pub about: String,
    /// Its subject.
    pub subject: String,
    /// To whom.
    pub address: String,
    /// What has become of it,
    pub fate: Fate,
    /// and since when.
    pub since: Timestamp,
    /// How often it was handed over, or tried to be.
    pub tries: u32,
    /// When it was planned.
    pub planned: Timestamp,
    /// What the server said last.
    pub said: String,
    /// The whole of it, while somebody may need it.
    pub text: Option<String>,
}

type Row = (String, String, String, String, String, String, i64, i64, i64, String, Option<String>);

const DELIVERIES: &str = "SELECT m.id, m.kind, m.about, m.subject, d.address, d.state, d.changed_at, \
     d.tries, m.planned_at, d.said, m.text FROM delivery d JOIN message m ON m.id = d.message";

impl Delivery {
    fn of(row: Row) -> Delivery {
        let (message, kind, about, subject, address, state, since, tries, planned, said, text) =
            row;
        Delivery {
            message,
            kind,
            about,
            subject,
            address,
            fate: Fate::of(&state),
            since: Timestamp::new(since),
            tries: u32::try_from(tries).unwrap_or(u32::MAX),
            planned: Timestamp::new(planned),
            said,
            text,
        }
    }
}

/// Adds a mail to a change that is under way.
pub(super) async fn insert(
    change: &mut AnyConnection,
    mail: &Mail,
    at: Timestamp,
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "INSERT INTO message (id, kind, about, subject, planned_at, text) \
         VALUES ($1, $2, $3, $4, $5, $6)",
    )
    .bind(&mail.id)
    .bind(&mail.kind)
    .bind(&mail.about)
    .bind(&mail.subject)
    .bind(at.get())
    .bind(&mail.text)
    .execute(&mut *change)
    .await?;
    for address in &mail.to {
        sqlx::query(
            "INSERT INTO delivery (message, address, state, tries, changed_at, next_at, said) \
             VALUES ($1, $2, 'planned', 0, $3, $3, '') ON CONFLICT (message, address) DO NOTHING",
        )
        .bind(&mail.id)
        .bind(address)
        .bind(at.get())
        .execute(&mut *change)
        .await?;
    }
    Ok(())
}

impl Store {
    /// Records mails that tell of no finding: copies, reports.
    ///
    /// # Errors
    /// If they cannot be written; then none is.
    pub async fn plan_mails(&self, mails: &[Mail], at: Timestamp) -> Result<(), StoreError> {
        let pool = self.pool().await?;
        let mut change = self.begin(&pool).await?;
        let work = async {
            for mail in mails {
                insert(&mut change, mail, at).await?;
            }
            change.commit().await
        };
        self.ask(work).await
    }

    /// Records a mail unless one of its name is there.
    ///
    /// # Errors
    /// If it cannot be written.
    pub async fn plan_once(&self, mail: &Mail, at: Timestamp) -> Result<(), StoreError> {
        let pool = self.pool().await?;
        let mut change = self.begin(&pool).await?;
        let work = async {
            let known = sqlx::query("SELECT 1 FROM message WHERE id = $1").bind(&mail.id);
            if known.fetch_optional(&mut *change).await?.is_none() {
                insert(&mut change, mail, at).await?;
            }
            change.commit().await
        };
        self.ask(work).await
    }

    /// What has become of a mail, by recipient, and what the server said.
    ///
    /// # Errors
    /// If it cannot be read.
    pub async fn fates(&self, message: &str) -> Result<Vec<(Fate, String)>, StoreError> {
        let pool = self.pool().await?;
        let asked = sqlx::query_as("SELECT state, said FROM delivery WHERE message = $1");
        let rows: Vec<(String, String)> = self.ask(asked.bind(message).fetch_all(&*pool)).await?;
        Ok(rows.into_iter().map(|(state, said)| (Fate::of(&state), said)).collect())
    }

    /// The deliveries that can be begun now, the oldest first.
    ///
    /// # Errors
    /// If they cannot be read.
    pub async fn due(&self, now: Timestamp) -> Result<Vec<Delivery>, StoreError> {
        let ask = "WHERE d.state IN ('planned', 'waiting') AND d.next_at <= $1 \
                   ORDER BY m.planned_at, m.about, m.id, d.address";
        self.deliveries(ask, now).await
    }

    /// The deliveries that are not over, or ended without being sent since `from`.
    ///
    /// # Errors
    /// If they cannot be read.
    pub async fn open_deliveries(&self, from: Timestamp) -> Result<Vec<Delivery>, StoreError> {
        let ask = "WHERE d.state <> 'sent' AND d.changed_at >= $1 \
                   ORDER BY m.planned_at, m.about, m.id, d.address";
        self.deliveries(ask, from).await
    }

    /// The deliveries that somebody began before `moment` and left.
    ///
    /// # Errors
    /// If they cannot be read.
    pub async fn left_behind(&self, moment: Timestamp) -> Result<Vec<Delivery>, StoreError> {
        let ask = "WHERE d.state = 'begun' AND d.changed_at < $1 \
                   ORDER BY m.planned_at, m.about, m.id, d.address";
        self.deliveries(ask, moment).await
    }

    async fn deliveries(&self, ask: &str, at: Timestamp) -> Result<Vec<Delivery>, StoreError> {
        let pool = self.pool().await?;
        let question = format!("{DELIVERIES} {ask}");
        let asked = sqlx::query_as(sqlx::AssertSqlSafe(question)).bind(at.get());
        let rows: Vec<Row> = self.ask(asked.fetch_all(&*pool)).await?;
        Ok(rows.into_iter().map(Delivery::of).collect())
    }

    /// Turns a delivery that is as it was read to `begun`; false if another was quicker.
    ///
    /// # Errors
    /// If that cannot be written.
    pub async fn begin_delivery(
        &self,
        delivery: &Delivery,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let pool = self.pool().await?;
        let change = sqlx::query(
            "UPDATE delivery SET state = 'begun', tries = tries + 1, changed_at = $1 \
             WHERE message = $2 AND address = $3 AND state = $4 AND changed_at = $5 AND tries = $6",
        )
        .bind(now.get())
        .bind(&delivery.message)
        .bind(&delivery.address)
        .bind(delivery.fate.name())
        .bind(delivery.since.get())
        .bind(i64::from(delivery.tries));
        let done = self.ask(change.execute(&*pool)).await?;
        Ok(done.rows_affected() == 1)
    }

    /// Says what became of a delivery that this program began, or that was left behind. One that is
    /// `planned` again was not tried. The text of a mail that has reached all goes.
    ///
    /// # Errors
    /// If that cannot be written.
    pub async fn end_delivery(
        &self,
        delivery: &Delivery,
        fate: Fate,
        said: &str,
        now: Timestamp,
        next: Timestamp,
    ) -> Result<(), StoreError> {
        let pool = self.pool().await?;
        let mut change = self.begin(&pool).await?;
        let work = async {
            sqlx::query(
                "UPDATE delivery SET state = $1, said = $2, changed_at = $3, next_at = $4, \
                 tries = tries - $7 \
                 WHERE message = $5 AND address = $6 AND state = 'begun'",
            )
            .bind(fate.name())
            .bind(said)
            .bind(now.get())
            .bind(next.get())
            .bind(&delivery.message)
            .bind(&delivery.address)
            .bind(i64::from(fate == Fate::Planned))
            .execute(&mut *change)
            .await?;
            sqlx::query(
                "UPDATE message SET text = NULL WHERE id = $1 AND NOT EXISTS \
                 (SELECT 1 FROM delivery WHERE message = $1 AND state IN \
                  ('planned', 'begun', 'waiting'))",
            )
            .bind(&delivery.message)
            .execute(&mut *change)
            .await?;
            change.commit().await
        };
        self.ask(work).await
    }
}
