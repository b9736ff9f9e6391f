-- Findings of which an Alertmanager and webhooks are told. Times are seconds since 1970.
CREATE TABLE alert (
    cluster TEXT NOT NULL,
    instance TEXT NOT NULL,
    user_name TEXT NOT NULL,
    -- Which jobs of the user; empty if all.
    part TEXT NOT NULL,
    -- Another each time that it begins.
    id TEXT NOT NULL,
    since BIGINT NOT NULL,
    seen_at BIGINT NOT NULL,
    -- When it was first not found any more.
    gone_at BIGINT,
    -- 1 once the Alertmanager knows of the end.
    end_told BIGINT NOT NULL,
    -- What is told, as JSON.
    told TEXT NOT NULL,
    PRIMARY KEY (cluster, instance, user_name, part)
);

-- What a webhook is told, each until it has it or it is given up.
CREATE TABLE event (
    id TEXT NOT NULL,
    webhook TEXT NOT NULL,
    at BIGINT NOT NULL,
    -- What is sent, as JSON.
    body TEXT NOT NULL,
    tries BIGINT NOT NULL,
    due_at BIGINT NOT NULL,
    -- Until when a process that tries it has it to itself.
    held_until BIGINT NOT NULL,
    -- When it was delivered or given up.
    ended_at BIGINT,
    -- Why it failed the last time.
    failure TEXT,
    PRIMARY KEY (id, webhook)
);

CREATE INDEX event_by_due ON event (webhook, due_at);
