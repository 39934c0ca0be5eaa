-- Deletes the inheritances of jobs that are pruned. $1: seqs. Differs from SQLite: an array.
DELETE FROM inheritances WHERE engagement_seq = ANY($1)
