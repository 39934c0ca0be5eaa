-- Deletes the checks of jobs that are pruned. $1: seqs. Differs from SQLite: an array.
DELETE FROM guardrail_checks WHERE job_seq = ANY($1)
