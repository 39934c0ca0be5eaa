-- Contents of artifacts, or further uses of those that are kept. $1: JSON rows. Differs from PostgreSQL: json_each.
INSERT INTO artifact_contents (tenant, digest, bytes, uses, content)
SELECT r.value ->> 0, r.value ->> 1, r.value ->> 2, r.value ->> 3, r.value ->> 4 FROM json_each($1) AS r WHERE true
ON CONFLICT (tenant, digest) DO UPDATE SET uses = artifact_contents.uses + excluded.uses
