-- What guardrails said, and noes of reviewers that count no more.

-- What guardrails were asked and what they said: for the audit, and nothing else reads it.
CREATE TABLE guardrail_checks (
    id             TEXT    PRIMARY KEY,                 -- the call of the guardrail's tool, and the attempt of the job
    engagement_seq BIGINT  NOT NULL,
    job_seq        BIGINT  NOT NULL,
    turn           BIGINT  NOT NULL,
    side           TEXT    NOT NULL CHECK (side IN ('input', 'output')),
    tool           TEXT    NOT NULL,
    content        TEXT    NOT NULL,                    -- JSON: arguments, output or error, and why it did not pass
    passed         BIGINT  NOT NULL CHECK (passed IN (0, 1)),
    created_at     BIGINT  NOT NULL
);
CREATE INDEX guardrail_checks_engagement ON guardrail_checks (engagement_seq);
CREATE INDEX guardrail_checks_job        ON guardrail_checks (job_seq);

-- Whether its no was overtaken: an operator had the job tried again, and whoever is asked is asked anew.
ALTER TABLE reviews ADD COLUMN spent BIGINT NOT NULL DEFAULT 0 CHECK (spent IN (0, 1));
