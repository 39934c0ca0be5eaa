-- Further inputs of an engagement, and questions that an agent asks its user.

-- How many jobs ever carried an input into it. One with a single input is looked at no further when its job ends.
ALTER TABLE engagements ADD COLUMN inputs INTEGER NOT NULL DEFAULT 1;

-- What parked jobs wait to be told by their users.
CREATE TABLE questions (
    call_id        TEXT    PRIMARY KEY,
    job_seq        INTEGER NOT NULL,
    turn           INTEGER NOT NULL,
    request_keys   TEXT    NOT NULL,                -- JSON: what each key means
    state          TEXT    NOT NULL CHECK (state IN ('open', 'answered', 'closed')),
    answer         TEXT,                            -- JSON: the value of each key
    answered_by    TEXT,
    asked_at       INTEGER NOT NULL,
    answered_at    INTEGER,
    CHECK ((state = 'answered') = (answer IS NOT NULL))
) WITHOUT ROWID;
CREATE INDEX questions_job ON questions (job_seq, turn);
