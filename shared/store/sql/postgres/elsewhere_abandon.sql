-- Jobs have ended without what agents elsewhere do for them: those are to be called off.
-- Differs from SQLite: an array per column.
UPDATE elsewhere
SET due_at = r.due_at
FROM unnest($1, $2) AS r (job_seq, due_at)
WHERE elsewhere.job_seq = r.job_seq AND elsewhere.due_at IS NULL
