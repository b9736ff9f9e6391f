//! Prometheus, asked by HTTP.

use std::collections::HashMap;
use std::time::Duration;

use prometheus_http_query::Client;
use steward_common::causes::with_causes;
use steward_common::id::{ClusterName, JobId};
use steward_common::metric::{JOB_LABEL, NODE_LABELS};

/// Which job of which cluster.
pub type JobKey = (ClusterName, JobId);

/// One series of an answer.
#[derive(Clone, Debug)]
pub struct Series {
    /// The job it is about.
    pub job: JobKey,
    /// All its labels.
    pub labels: HashMap<String, String>,
    /// Its value.
    pub value: f64,
}

/// A Prometheus server.
pub struct Prometheus {
    client: Client,
    url: String,
}

/// A question without an answer.
#[derive(Debug, thiserror::Error)]
pub enum PrometheusError {
    /// The address is not one.
    #[error("{url}: not the address of a Prometheus server: {why}")]
    BadAddress {
        /// What was given.
        url: String,
        /// What is wrong with it.
        why: String,
    },
    /// The server did not answer, or refused.
    #[error("{url}: {why} (the address is prometheus.url, or --prometheus of `steward now`)")]
    NoAnswer {
        /// The server.
        url: String,
        /// What went wrong.
        why: String,
    },
    /// The answer is not about jobs.
    #[error("{url}: the answer to {query} has a series without {label}")]
    NoLabel {
        /// The server.
        url: String,
        /// What was asked.
        query: String,
        /// What is missing.
        label: &'static str,
    },
}

impl Prometheus {
    /// A client for the server at `url`, where no question may take longer than `timeout`; nothing
    /// is asked yet.
    ///
    /// # Errors
    /// If it is no address.
    pub fn new(url: &str, timeout: Duration) -> Result<Self, PrometheusError> {
        let bad = |why: String| PrometheusError::BadAddress { url: url.to_owned(), why };
        let http = reqwest::Client::builder()
            .timeout(timeout)
            .build()
            .map_err(|error| bad(error.to_string()))?;
        let client = Client::from(http, url).map_err(|error| bad(error.to_string()))?;
        Ok(Self { client, url: url.to_owned() })
    }

    /// Asks for anything: labels and value of each series.
    ///
    /// # Errors
    /// If the server does not answer, or not with series.
    pub async fn series(
        &self,
        query: &str,
    ) -> Result<Vec<(HashMap<String, String>, f64)>, PrometheusError> {
        let no_answer = |why: String| PrometheusError::NoAnswer { url: self.url.clone(), why };
        let answer = self.client.query(query).post().await;
        let answer = answer.map_err(|error| no_answer(with_causes(&error)))?;
        let vector = answer
            .data()
            .as_vector()
            .ok_or_else(|| no_answer(format!("{query} gave no vector")))?;
        let each = vector.iter().map(|one| (one.metric().clone(), one.sample().value()));
        Ok(each.collect())
    }

    /// Asks for figures of jobs.
    ///
    /// # Errors
    /// If the server does not answer or the answer is about something else.
    pub async fn jobs(&self, query: &str) -> Result<Vec<Series>, PrometheusError> {
        self.series(query)
            .await?
            .into_iter()
            .map(|(labels, value)| {
                let no_label = |label| PrometheusError::NoLabel {
                    url: self.url.clone(),
                    query: query.to_owned(),
                    label,
                };
                let text = |label| labels.get(label).ok_or_else(|| no_label(label));
                let [cluster, _] = NODE_LABELS;
                let job = (
                    text(cluster)?.parse().map_err(|_| no_label(cluster))?,
                    text(JOB_LABEL)?.parse().map_err(|_| no_label(JOB_LABEL))?,
                );
                Ok(Series { job, labels, value })
            })
            .collect()
    }
}
