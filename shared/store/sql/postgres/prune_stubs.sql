-- Deletes the stubs of jobs that are pruned. $1: seqs. Differs from SQLite: an array.
DELETE FROM stubs WHERE job_seq = ANY($1)
