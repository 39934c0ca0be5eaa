-- Deletes the forks of jobs that are pruned. $1: seqs. Differs from SQLite: an array.
DELETE FROM forks WHERE engagement_seq = ANY($1)
