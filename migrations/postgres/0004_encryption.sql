-- Encryption at rest: the same tables and columns as migrations/sqlite/0004_encryption.sql.
CREATE TABLE data_keys (
    seq  BIGINT PRIMARY KEY,
    body TEXT NOT NULL
);

-- What a registered source is compared by: two sealed texts are never equal. NULL: it was registered before.
ALTER TABLE agents ADD COLUMN source_digest TEXT;
