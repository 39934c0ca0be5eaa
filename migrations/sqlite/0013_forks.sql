-- Forks: engagements that go on from a turn of another one, whose past they read and do not copy.

CREATE TABLE forks (
    engagement_seq INTEGER PRIMARY KEY,
    parent_id      TEXT    NOT NULL,                    -- the engagement that it comes from
    at_turn        INTEGER NOT NULL CHECK (at_turn >= 1),
    phase          INTEGER NOT NULL CHECK (phase BETWEEN 0 AND 6),  -- the first one that is run anew
    live_tools     INTEGER NOT NULL CHECK (live_tools IN (0, 1)),
    changes        TEXT    NOT NULL,                    -- JSON: what was set
    created_at     INTEGER NOT NULL
);

-- Whose rows an engagement reads beside its own: an engagement is its first job's number, and so are its checkpoints'.
CREATE TABLE inheritances (
    engagement_seq INTEGER NOT NULL,
    source_seq     INTEGER NOT NULL,
    generation     INTEGER NOT NULL CHECK (generation >= 1),        -- 1: the one that it was forked from
    turn_until     INTEGER NOT NULL,                    -- the first turn that it does not read
    message_until  INTEGER NOT NULL,                    -- the last message that it reads
    PRIMARY KEY (engagement_seq, source_seq)
);
CREATE INDEX inheritances_source ON inheritances (source_seq);

-- Calls that were not made: what another call had come to stands for them.
CREATE TABLE stubs (
    job_seq INTEGER NOT NULL,
    call_id TEXT    NOT NULL,
    of_call TEXT    NOT NULL,
    PRIMARY KEY (job_seq, call_id)
);
