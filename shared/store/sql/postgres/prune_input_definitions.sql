-- Deletes what names the agents of jobs that are pruned. $1: seqs. Differs from SQLite: an array.
DELETE FROM input_definitions WHERE job_seq = ANY($1)
