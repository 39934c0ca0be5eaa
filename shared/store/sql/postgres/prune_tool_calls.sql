-- Deletes the tool_calls of jobs that are pruned. $1: seqs. Differs from SQLite: an array.
DELETE FROM tool_calls WHERE job_seq = ANY($1)
