-- The agents of inputs; the first one of an engagement may have its own already. $1: JSON [[number of the job, digest, how long the
-- conversation is kept], …]. Differs from PostgreSQL: json_each.
INSERT INTO input_definitions (job_seq, digest, retention_ms)
SELECT r.value ->> 0, r.value ->> 1, r.value ->> 2 FROM json_each($1) AS r WHERE true
ON CONFLICT (job_seq) DO NOTHING
