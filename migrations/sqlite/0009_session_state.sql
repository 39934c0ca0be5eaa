-- State that agents keep between turns.

-- Whose keys: an engagement, or a user of an agent. The version grows with each commit.
CREATE TABLE state_scopes (
    name           TEXT PRIMARY KEY,
    engagement_seq INTEGER,                         -- NULL: it outlives engagements
    version        INTEGER NOT NULL CHECK (version >= 0),
    updated_at     INTEGER NOT NULL
);
CREATE INDEX state_scopes_engagement ON state_scopes (engagement_seq) WHERE engagement_seq IS NOT NULL;

CREATE TABLE state_keys (
    scope      TEXT    NOT NULL,
    name       TEXT    NOT NULL,
    content    TEXT    NOT NULL,                    -- JSON
    version    INTEGER NOT NULL CHECK (version > 0),    -- of the scope, when it was written
    updated_at INTEGER NOT NULL,
    expires_at INTEGER,
    PRIMARY KEY (scope, name)
);
CREATE INDEX state_keys_expiring ON state_keys (expires_at) WHERE expires_at IS NOT NULL;
