-- Artifacts: files that agents make for those who asked. What is in them is kept once per tenant, however often it is made.

CREATE TABLE artifact_contents (
    tenant  TEXT NOT NULL,                             -- '' is none
    digest  TEXT NOT NULL,                             -- lower-case hex SHA-256 of the bytes
    bytes   BIGINT NOT NULL CHECK (bytes >= 0),
    uses    BIGINT NOT NULL CHECK (uses >= 0),         -- artifacts that have this content; without any it is deleted
    content TEXT NOT NULL,                             -- the bytes in base64
    PRIMARY KEY (tenant, digest)
);
CREATE INDEX artifact_contents_unused ON artifact_contents (digest) WHERE uses = 0;

CREATE TABLE artifacts (
    id             TEXT PRIMARY KEY,
    engagement_seq BIGINT NOT NULL,
    job_seq        BIGINT NOT NULL,
    call_id        TEXT NOT NULL,                      -- the call that made it
    turn           BIGINT NOT NULL,
    part           BIGINT NOT NULL,                    -- its place among the files of the call
    tenant         TEXT NOT NULL,
    digest         TEXT NOT NULL,
    name           TEXT NOT NULL,
    media_type     TEXT NOT NULL,
    created_at     BIGINT NOT NULL
);
CREATE INDEX artifacts_engagement ON artifacts (engagement_seq, turn);
