-- Contents of artifacts, or further uses of those that are kept: whoever deletes what nobody uses waits for this, and looks again.
-- Differs from SQLite: an array per column.
INSERT INTO artifact_contents (tenant, digest, bytes, uses, content)
SELECT * FROM unnest($1, $2, $3, $4, $5)
ON CONFLICT (tenant, digest) DO UPDATE SET uses = artifact_contents.uses + excluded.uses
