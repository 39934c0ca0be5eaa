-- Jobs have ended without what agents elsewhere do for them: those are to be called off.
UPDATE elsewhere
SET due_at = r.due_at
FROM {rows: job_seq, due_at}
WHERE elsewhere.job_seq = r.job_seq AND elsewhere.due_at IS NULL
