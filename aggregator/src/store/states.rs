//! The states in which jobs were seen.

use std::collections::HashMap;

use steward_common::id::{ClusterName, JobId};
use steward_common::time::Timestamp;

use super::{Store, StoreError};

/// A state in which a job was seen, and since when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenState {
    /// Slurm's long name of it.
    pub state: String,
    /// When the snapshot was taken that saw it first.
    pub at: Timestamp,
}

impl Store {
    /// Adds the states in which these jobs of a cluster are from `at` on: all of them, or none.
    ///
    /// # Errors
    /// If it cannot be written.
    pub async fn add_states(
        &self,
        cluster: &ClusterName,
        at: Timestamp,
        states: &[(JobId, String)],
    ) -> Result<(), StoreError> {
        let pool = self.pool().await?;
        let mut change = self.begin(&pool).await?;
        let work = async {
            for (job, state) in states {
                // A clock that was set back may bring a time twice: what was seen last counts.
                sqlx::query(
                    "INSERT INTO job_state (cluster, job, seen_at, state) VALUES ($1, $2, $3, $4) \
                     ON CONFLICT (cluster, job, seen_at) DO UPDATE SET state = excluded.state",
                )
                .bind(cluster.as_str())
                .bind(i64::from(job.get()))
                .bind(at.get())
                .bind(state)
                .execute(&mut *change)
                .await?;
            }
            change.commit().await
        };
        self.ask(work).await
    }

    /// The states of a job, in the order in which they were seen.
    ///
    /// # Errors
    /// If they cannot be read.
    pub async fn states(
        &self,
        cluster: &ClusterName,
        job: JobId,
    ) -> Result<Vec<SeenState>, StoreError> {
        let pool = self.pool().await?;
        let rows = sqlx::query_as::<_, (String, i64)>(
            "SELECT state, seen_at FROM job_state WHERE cluster = $1 AND job = $2 ORDER BY seen_at",
        )
        .bind(cluster.as_str())
        .bind(i64::from(job.get()));
        let rows = self.ask(rows.fetch_all(&*pool)).await?;
        let seen = |(state, at)| SeenState { state, at: Timestamp::new(at) };
        Ok(rows.into_iter().map(seen).collect())
    }

    /// The state in which each job from `first` on was seen last.
    ///
    /// # Errors
    /// If they cannot be read.
    pub async fn last_states(
        &self,
        cluster: &ClusterName,
        first: JobId,
    ) -> Result<HashMap<JobId, String>, StoreError> {
        let pool = self.pool().await?;
        let rows = sqlx::query_as::<_, (i64, String)>(
            "SELECT job, state FROM job_state WHERE cluster = $1 AND job >= $2 ORDER BY seen_at",
        )
        .bind(cluster.as_str())
        .bind(i64::from(first.get()));
        let rows = self.ask(rows.fetch_all(&*pool)).await?;
        let known = |(job, state)| Some((JobId::new(u32::try_from(job).ok()?)?, state));
        // A later one takes the place of an earlier one.
        Ok(rows.into_iter().filter_map(known).collect())
    }

    /// Forgets what was seen before `moment`; gives how much.
    ///
    /// # Errors
    /// If that cannot be written.
    pub async fn forget_states(&self, moment: Timestamp) -> Result<u64, StoreError> {
        let pool = self.pool().await?;
        let done = sqlx::query("DELETE FROM job_state WHERE seen_at < $1")
            .bind(moment.get())
            .execute(&*pool);
        self.ask(done).await.map(|done| done.rows_affected())
    }
}
