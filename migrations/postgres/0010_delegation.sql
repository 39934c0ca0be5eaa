-- Delegation: agents that work for others. A tree of engagements shares the budget row of its root.

ALTER TABLE engagements ADD COLUMN depth BIGINT NOT NULL DEFAULT 0 CHECK (depth BETWEEN 0 AND 10);   -- 0: nobody's child
ALTER TABLE engagements ADD COLUMN parent_seq BIGINT;                  -- the job that it works for
ALTER TABLE engagements ADD COLUMN children BIGINT NOT NULL DEFAULT 0; -- engagements that ever worked for it

-- One row per job that works for another one.
CREATE TABLE delegations (
    job_seq     BIGINT PRIMARY KEY,
    parent_seq  BIGINT NOT NULL,                       -- the job that it works for
    call_id     TEXT,                                   -- the call that is answered by it; NULL: nobody waits for it
    turn        BIGINT NOT NULL,                       -- the parent's turn
    agent       TEXT    NOT NULL,
    mode        TEXT    NOT NULL CHECK (mode IN ('supervisor', 'parallel', 'handoff')),
    state       TEXT    NOT NULL CHECK (state IN ('open', 'success', 'error', 'timeout')),
    started_at  BIGINT NOT NULL,
    deadline_at BIGINT,
    ended_at    BIGINT,
    CHECK ((state = 'open') = (ended_at IS NULL))
);
CREATE INDEX delegations_parent  ON delegations (parent_seq, turn);
CREATE INDEX delegations_open    ON delegations (parent_seq) WHERE state = 'open';
CREATE INDEX delegations_overdue ON delegations (deadline_at) WHERE state = 'open' AND deadline_at IS NOT NULL;
