//! What was told about accounts of the bank. A mail is recorded together with what it tells of: both or neither.

use sqlx::Any;
use sqlx::any::AnyArguments;
use sqlx::query::Query;
use steward_common::bank::Level;
use steward_common::time::Timestamp;

use super::post::{self, Mail};
use super::{Store, StoreError};

type Question = Query<'static, Any, AnyArguments>;

impl Store {
    /// Notes that a level is reached, and says whether nobody noted it before in this period: then the mails are recorded,
    /// too.
    ///
    /// # Errors
    /// If that cannot be written.
    pub async fn note_level(
        &self,
        account: &str,
        level: Level,
        mails: &[Mail],
        at: Timestamp,
    ) -> Result<bool, StoreError> {
        let text = match level {
            Level::Lower => {
                "UPDATE bank_account SET lower_told = 1 WHERE account = $1 AND lower_told = 0"
            }
            Level::Upper => {
                "UPDATE bank_account SET upper_told = 1 WHERE account = $1 AND upper_told = 0"
            }
            Level::Over => {
                "UPDATE bank_account SET over_told = 1 WHERE account = $1 AND over_told = 0"
            }
        };
        self.note(sqlx::query(text).bind(account.to_owned()), mails, at).await
    }

    /// An account is not over its limit any more: if it is again, that is told again.
    ///
    /// # Errors
    /// If that cannot be written.
    pub async fn forget_over(&self, account: &str) -> Result<(), StoreError> {
        let text = "UPDATE bank_account SET over_told = 0 WHERE account = $1 AND over_told = 1";
        let question = sqlx::query(text).bind(account.to_owned());
        self.note(question, &[], Timestamp::new(0)).await.map(drop)
    }

    /// The same as for a level, for the end of the proposal.
    ///
    /// # Errors
    /// If that cannot be written.
    pub async fn note_end(
        &self,
        account: &str,
        mails: &[Mail],
        at: Timestamp,
    ) -> Result<bool, StoreError> {
        let text = "UPDATE bank_account SET end_told = 1 WHERE account = $1 AND end_told = 0";
        self.note(sqlx::query(text).bind(account.to_owned()), mails, at).await
    }

    /// Accounts of which no statement of this month, `YYYY-MM`, or a later one was told.
    ///
    /// # Errors
    /// If they cannot be read.
    pub async fn without_statement(&self, month: &str) -> Result<Vec<String>, StoreError> {
        let pool = self.pool().await?;
        let text = "SELECT account FROM bank_account WHERE statement_told < $1 ORDER BY account";
        self.ask(sqlx::query_scalar(text).bind(month).fetch_all(&*pool)).await
    }

    /// The same as for a level, for the statement of a month.
    ///
    /// # Errors
    /// If that cannot be written.
    pub async fn note_statement(
        &self,
        account: &str,
        month: &str,
        mails: &[Mail],
        at: Timestamp,
    ) -> Result<bool, StoreError> {
        let text = "UPDATE bank_account SET statement_told = $2 WHERE account = $1 AND statement_told < $2";
        let question = sqlx::query(text).bind(account.to_owned()).bind(month.to_owned());
        self.note(question, mails, at).await
    }

    async fn note(
        &self,
        question: Question,
        mails: &[Mail],
        at: Timestamp,
    ) -> Result<bool, StoreError> {
        let pool = self.pool().await?;
        let mut work = self.turn(&pool).await?;
        let first = self.ask(question.execute(&mut *work)).await?.rows_affected() == 1;
        for mail in mails.iter().filter(|_| first) {
            self.ask(post::insert(&mut work, mail, at)).await?;
        }
        self.ask(work.commit()).await?;
        Ok(first)
    }
}
