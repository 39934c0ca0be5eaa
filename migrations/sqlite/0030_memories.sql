-- What agents remember of their users across engagements.

-- A row per completed job whose agent remembers. What was said stands in `messages`; without it nothing is remembered.
CREATE TABLE memories (
    job_seq        INTEGER PRIMARY KEY,
    engagement_seq INTEGER NOT NULL,
    tenant         TEXT    NOT NULL,                    -- empty: none
    agent_name     TEXT    NOT NULL,
    user_id        TEXT    NOT NULL,
    rules          TEXT    NOT NULL,                    -- the digest of the guardrails and filters that it has passed
    began          INTEGER NOT NULL,                    -- the turn that took the input
    ended          INTEGER NOT NULL CHECK (ended >= began),  -- the turn that answered
    completed_at   INTEGER NOT NULL
);
CREATE INDEX memories_of_user ON memories (tenant, agent_name, user_id, rules, completed_at);
