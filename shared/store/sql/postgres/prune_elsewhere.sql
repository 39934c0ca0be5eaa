-- Deletes what agents elsewhere do for jobs that are pruned. $1: seqs. Differs from SQLite: an array.
DELETE FROM elsewhere WHERE job_seq = ANY($1)
