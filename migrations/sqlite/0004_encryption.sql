-- Encryption at rest: the data keys that values are sealed with, each sealed itself with a key of the configuration.
CREATE TABLE data_keys (
    seq  INTEGER PRIMARY KEY,
    body TEXT NOT NULL
);

-- What a registered source is compared by: two sealed texts are never equal. NULL: it was registered before.
ALTER TABLE agents ADD COLUMN source_digest TEXT;
