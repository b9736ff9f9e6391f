-- Who is left alone, by which rule (all if NULL), on which cluster (all if NULL), why and until when. Times are seconds since 1970.
CREATE TABLE exemption (
    id TEXT NOT NULL PRIMARY KEY,
    user_name TEXT NOT NULL,
    rule TEXT,
    cluster TEXT,
    reason TEXT NOT NULL,
    added_at BIGINT NOT NULL,
    added_by TEXT NOT NULL,
    ends_at BIGINT NOT NULL,
    removed_at BIGINT,
    removed_by TEXT
);

CREATE INDEX exemption_by_end ON exemption (ends_at);

-- Who did what to whom. Rows are only ever added. Times are milliseconds since 1970.
CREATE TABLE audit_log (
    id TEXT NOT NULL PRIMARY KEY,
    at_ms BIGINT NOT NULL,
    actor TEXT NOT NULL,
    action TEXT NOT NULL,
    subject TEXT NOT NULL,
    detail TEXT NOT NULL
);

CREATE INDEX audit_log_by_time ON audit_log (at_ms);
