-- Forgets what jobs waited for. $1: seqs. Differs from SQLite: an array.
DELETE FROM budget_waits WHERE job_seq = ANY($1)
