-- Reservations that are settled or given back. $1: job seqs. Differs from SQLite: an array.
DELETE FROM reservations WHERE job_seq = ANY($1)
