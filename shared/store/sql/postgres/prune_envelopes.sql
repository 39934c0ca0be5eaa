-- Deletes the envelopes of jobs that are pruned. $1: seqs. Differs from SQLite: an array.
DELETE FROM job_envelopes WHERE job_seq = ANY($1)
