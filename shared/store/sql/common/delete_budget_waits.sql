-- Forgets what jobs waited for.
DELETE FROM budget_waits WHERE job_seq {in: seqs}
