-- Errors and what is done about them: tries of tool calls, escalations, circuit breakers.

ALTER TABLE tool_calls ADD COLUMN retries BIGINT NOT NULL DEFAULT 0 CHECK (retries >= 0);        -- tries beyond the first
ALTER TABLE tool_calls ADD COLUMN tried TEXT;           -- the tries that failed before the last: JSON objects without any content, joined by commas
ALTER TABLE tool_calls ADD COLUMN handled TEXT;         -- JSON: what a handler made of the failure
ALTER TABLE tool_calls ADD COLUMN started_at BIGINT;    -- when its first request may have left
ALTER TABLE tool_calls ADD COLUMN completed_at BIGINT;  -- when its outcome was known

ALTER TABLE reviews DROP CONSTRAINT reviews_kind_check;
ALTER TABLE reviews ADD CONSTRAINT reviews_kind_check
    CHECK (kind IN ('input', 'output', 'unknown_outcome', 'escalation', 'confirmation'));
CREATE INDEX reviews_engagement ON reviews (engagement_seq);

-- What has failed lately; what is well has no row. Closed while open_until is NULL, open until then, half-open after it.
CREATE TABLE breakers (
    name       TEXT PRIMARY KEY,                        -- JSON: ["tool", agent, tool] or ["model", provider, model]
    failures   BIGINT NOT NULL DEFAULT 0 CHECK (failures >= 0),      -- in a row
    open_until BIGINT,
    probes     BIGINT NOT NULL DEFAULT 0 CHECK (probes >= 0),        -- let through since it is half-open
    probed_at  BIGINT NOT NULL DEFAULT 0,
    successes  BIGINT NOT NULL DEFAULT 0 CHECK (successes >= 0),     -- of those
    failed_at  BIGINT NOT NULL
);
