-- Deletes the tool_retries of jobs that are pruned. $1: seqs. Differs from SQLite: an array.
DELETE FROM tool_retries WHERE job_seq = ANY($1)
