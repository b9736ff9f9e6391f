-- What was done about runs of jobs whose GPUs do nothing. Times are seconds since 1970; what has not happened is NULL.
CREATE TABLE cancellation (
    id TEXT NOT NULL PRIMARY KEY,
    instance TEXT NOT NULL,
    cluster TEXT NOT NULL,
    job BIGINT NOT NULL,
    submitted_at BIGINT NOT NULL,
    user_name TEXT NOT NULL,
    first_at BIGINT,
    second_at BIGINT,
    sliding_at BIGINT,
    base_at BIGINT,
    base_cpu_seconds DOUBLE PRECISION,
    base_cpu_covered DOUBLE PRECISION,
    base_io_bytes DOUBLE PRECISION,
    base_io_covered DOUBLE PRECISION,
    proposed_at BIGINT,
    decision TEXT,
    decided_at BIGINT,
    decided_by TEXT,
    decided_why TEXT,
    signalled_at BIGINT,
    sent_at BIGINT,
    kill_at BIGINT,
    cancelled_at BIGINT,
    told_at BIGINT,
    leased_until BIGINT NOT NULL,
    changed_at BIGINT NOT NULL,
    UNIQUE (instance, cluster, job, submitted_at)
);

CREATE INDEX cancellation_by_change ON cancellation (changed_at);

-- Each signal or end that was meant for a job, for the limits of a run and an hour.
CREATE TABLE cancel_act (
    id TEXT NOT NULL PRIMARY KEY,
    at BIGINT NOT NULL,
    cancellation TEXT NOT NULL
);

CREATE INDEX cancel_act_by_time ON cancel_act (at);

-- Whoever counts acts changes this row first, so that two never count at once.
CREATE TABLE cancel_gate (
    id BIGINT NOT NULL PRIMARY KEY,
    turns BIGINT NOT NULL
);

INSERT INTO cancel_gate (id, turns) VALUES (1, 0);
