-- Deletes workflows. $1: seqs. Differs from SQLite: an array.
DELETE FROM workflows WHERE seq = ANY($1)
