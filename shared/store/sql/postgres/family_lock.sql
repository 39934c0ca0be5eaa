-- Holds jobs, those that work for others before the others: in this order they end. $1: seqs.
-- Differs from SQLite: rows are locked.
SELECT j.seq FROM jobs AS j WHERE j.seq = ANY($1) ORDER BY j.seq DESC FOR UPDATE
