-- An engagement's agent is that of the input whose turn has come. $1, $2: seqs of engagements and of the jobs.
-- Differs from SQLite: an array per column.
UPDATE engagements
SET digest = d.digest, retention_ms = d.retention_ms
FROM unnest($1, $2) AS r (seq, job_seq)
JOIN input_definitions AS d ON d.job_seq = r.job_seq
WHERE engagements.seq = r.seq
