-- Deletes the branches of jobs that are pruned. $1: seqs. Differs from SQLite: an array.
DELETE FROM branches WHERE job_seq = ANY($1)
