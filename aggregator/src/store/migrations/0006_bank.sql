-- The bank. Amounts are billing-seconds; days are YYYY-MM-DD; times are seconds since 1970; flags are 0 or 1. The last
-- month of which a statement was told is YYYY-MM, or empty.
CREATE TABLE bank_account (
    account TEXT PRIMARY KEY,
    entries BIGINT NOT NULL,
    unlimited BIGINT NOT NULL,
    start_day TEXT NOT NULL,
    end_day TEXT NOT NULL,
    lower_told BIGINT NOT NULL,
    upper_told BIGINT NOT NULL,
    over_told BIGINT NOT NULL,
    end_told BIGINT NOT NULL,
    statement_told TEXT NOT NULL,
    made_at BIGINT NOT NULL
);

-- Only added to. An empty cluster is all clusters.
CREATE TABLE bank_entry (
    account TEXT NOT NULL,
    number BIGINT NOT NULL,
    cluster TEXT NOT NULL,
    kind TEXT NOT NULL,
    amount BIGINT NOT NULL,
    made_at BIGINT NOT NULL,
    actor TEXT NOT NULL,
    reason TEXT NOT NULL,
    about TEXT NOT NULL,
    PRIMARY KEY (account, number)
);

-- Holds of the bank: what it set, and what was there before (none if null). The state is wanted, held or leaving.
CREATE TABLE bank_hold (
    account TEXT NOT NULL,
    cluster TEXT NOT NULL,
    mechanism TEXT NOT NULL,
    value BIGINT NOT NULL,
    previous BIGINT,
    state TEXT NOT NULL,
    since BIGINT NOT NULL,
    actor TEXT NOT NULL,
    PRIMARY KEY (account, cluster)
);

-- Usage of Slurm that is to be set to nothing, with what it was when that was decided.
CREATE TABLE bank_reset (
    account TEXT NOT NULL,
    cluster TEXT NOT NULL,
    used BIGINT NOT NULL,
    since BIGINT NOT NULL,
    actor TEXT NOT NULL,
    PRIMARY KEY (account, cluster)
);

-- What Slurm was told.
CREATE TABLE bank_action (
    id TEXT PRIMARY KEY,
    made_at BIGINT NOT NULL,
    account TEXT NOT NULL,
    cluster TEXT NOT NULL,
    actor TEXT NOT NULL,
    command TEXT NOT NULL,
    outcome TEXT NOT NULL
);

CREATE INDEX bank_action_by_account ON bank_action (account, made_at);
