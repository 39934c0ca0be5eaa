-- Deletes the breakers that jobs waited for. $1: seqs. Differs from SQLite: an array.
DELETE FROM breaker_waits WHERE job_seq = ANY($1)
