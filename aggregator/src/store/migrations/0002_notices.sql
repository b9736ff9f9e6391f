-- What users were told, and what became of the mails that told them. Times are seconds since 1970.

-- A mail. `text` is the whole of it until nobody needs it any more.
CREATE TABLE message (
    id TEXT NOT NULL PRIMARY KEY,
    kind TEXT NOT NULL,
    about TEXT NOT NULL,
    subject TEXT NOT NULL,
    planned_at BIGINT NOT NULL,
    text TEXT
);

-- A mail on its way to one recipient.
CREATE TABLE delivery (
    message TEXT NOT NULL REFERENCES message (id),
    address TEXT NOT NULL,
    state TEXT NOT NULL,
    tries BIGINT NOT NULL,
    changed_at BIGINT NOT NULL,
    next_at BIGINT NOT NULL,
    said TEXT NOT NULL,
    PRIMARY KEY (message, address)
);

CREATE INDEX delivery_by_state ON delivery (state, next_at);

-- A finding that a user was told of. `wasted` is in billing hours.
CREATE TABLE notice (
    instance TEXT NOT NULL,
    user_name TEXT NOT NULL,
    cluster TEXT NOT NULL,
    told_at BIGINT NOT NULL,
    rule TEXT NOT NULL,
    step BIGINT NOT NULL,
    jobs BIGINT,
    wasted DOUBLE PRECISION,
    message TEXT NOT NULL,
    PRIMARY KEY (instance, user_name, cluster, told_at)
);

CREATE INDEX notice_by_time ON notice (told_at);

-- When a user was told last of a rule: who moves the time tells, nobody else.
CREATE TABLE notice_gate (
    instance TEXT NOT NULL,
    user_name TEXT NOT NULL,
    cluster TEXT NOT NULL,
    told_at BIGINT NOT NULL,
    PRIMARY KEY (instance, user_name, cluster)
);
