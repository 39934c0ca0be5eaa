-- Reservations that are settled or given back.
DELETE FROM reservations WHERE job_seq {in: seqs}
