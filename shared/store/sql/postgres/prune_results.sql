-- Deletes the results of jobs that are pruned. $1: seqs. Differs from SQLite: an array.
DELETE FROM job_results WHERE job_seq = ANY($1)
