-- Deletes the errors of jobs that are pruned. $1: seqs. Differs from SQLite: an array.
DELETE FROM job_errors WHERE job_seq = ANY($1)
