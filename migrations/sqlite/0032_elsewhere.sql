-- Calls that agents of other servers work for, until they are over or those servers were told that nobody waits any more.
CREATE TABLE elsewhere (
    call_id TEXT    NOT NULL,
    place   TEXT    NOT NULL,            -- the agent: its name in the configuration, or its address
    job_seq INTEGER NOT NULL,
    handle  TEXT,                        -- JSON: what it works under there, once that is known
    due_at  INTEGER,                    -- when it is called off next; NULL while somebody waits for it
    tries   INTEGER NOT NULL DEFAULT 0,  -- of calling it off
    PRIMARY KEY (call_id, place)
);
CREATE INDEX elsewhere_job ON elsewhere (job_seq);
CREATE INDEX elsewhere_due ON elsewhere (due_at) WHERE due_at IS NOT NULL;
