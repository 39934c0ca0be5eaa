-- Deletes the jobs that are pruned. $1: seqs. Differs from SQLite: an array.
DELETE FROM jobs WHERE seq = ANY($1)
