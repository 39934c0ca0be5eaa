-- Contents of artifacts, or further uses of those that are kept: a transaction that deletes unused contents waits for
-- this one, and checks again.
INSERT INTO artifact_contents {values: tenant, digest, bytes, uses, content}
ON CONFLICT (tenant, digest) DO UPDATE SET uses = artifact_contents.uses + excluded.uses
