-- Deletes the reviews of jobs that are pruned. $1: seqs. Differs from SQLite: an array.
DELETE FROM reviews WHERE job_seq = ANY($1)
