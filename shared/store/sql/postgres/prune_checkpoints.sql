-- Deletes the checkpoints of jobs that are pruned. $1: seqs. Differs from SQLite: an array.
DELETE FROM checkpoints WHERE job_seq = ANY($1)
