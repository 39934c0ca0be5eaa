-- Runs as the Agent Protocol tells them: what happened in an engagement and in those that work for it, numbered without
-- gaps. Numbers are given when somebody asks, so that a run nobody follows costs nothing.

CREATE TABLE runs (
    engagement_seq INTEGER PRIMARY KEY,
    told           INTEGER NOT NULL CHECK (told >= 0), -- the number of its last event
    marks          TEXT    NOT NULL                   -- JSON: up to where each engagement was told
);

CREATE TABLE run_events (
    engagement_seq INTEGER NOT NULL,
    id             INTEGER NOT NULL CHECK (id > 0),
    job_seq        INTEGER NOT NULL,                 -- the request that it belongs to
    body           TEXT NOT NULL,                   -- JSON: the event as it is sent
    PRIMARY KEY (engagement_seq, id)
) WITHOUT ROWID;
CREATE INDEX run_events_job ON run_events (job_seq, id);

CREATE TABLE run_requests (
    job_seq        INTEGER PRIMARY KEY,
    engagement_seq INTEGER NOT NULL,
    began          INTEGER NOT NULL,                 -- the number of request_started
    ended          INTEGER,                          -- the number of request_completed
    seen           INTEGER NOT NULL DEFAULT 0        -- up to where it was polled without `since`
);
CREATE INDEX run_requests_run ON run_requests (engagement_seq);
CREATE INDEX engagements_agent ON engagements (agent_name, seq);

-- What clients have configured for later requests, of all runs of an agent ('' is no run and no tenant) or of one run.
CREATE TABLE run_settings (
    agent_name TEXT NOT NULL,
    tenant     TEXT NOT NULL,
    run        TEXT NOT NULL,
    version    INTEGER NOT NULL CHECK (version > 0),
    args       TEXT NOT NULL,                        -- JSON: an object
    PRIMARY KEY (agent_name, tenant, run)
);
