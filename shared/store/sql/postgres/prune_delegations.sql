-- Deletes what is known of jobs that worked for others. $1: seqs. Differs from SQLite: an array.
DELETE FROM delegations WHERE job_seq = ANY($1)
