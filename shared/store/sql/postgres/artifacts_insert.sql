-- New artifacts. Differs from SQLite: an array per column.
INSERT INTO artifacts (id, engagement_seq, job_seq, call_id, turn, part, tenant, digest, name, media_type, created_at)
SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
