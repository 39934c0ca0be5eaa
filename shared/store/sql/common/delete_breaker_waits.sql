-- Deletes the breakers that jobs waited for.
DELETE FROM breaker_waits WHERE job_seq {in: seqs}
