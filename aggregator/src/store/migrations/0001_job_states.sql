-- The states in which jobs were seen, each with the time of the snapshot that saw it first. Times are seconds since 1970.
CREATE TABLE job_state (
    cluster TEXT NOT NULL,
    job BIGINT NOT NULL,
    seen_at BIGINT NOT NULL,
    state TEXT NOT NULL,
    PRIMARY KEY (cluster, job, seen_at)
);

CREATE INDEX job_state_by_time ON job_state (seen_at);
