-- The agents of inputs; the first one of an engagement may have its own already. $1 … $3: numbers of jobs, digests, how long the
-- conversation is kept. Differs from SQLite: an array per column.
INSERT INTO input_definitions (job_seq, digest, retention_ms)
SELECT r.job_seq, r.digest, r.retention_ms FROM unnest($1, $2, $3) AS r (job_seq, digest, retention_ms)
ON CONFLICT (job_seq) DO NOTHING
