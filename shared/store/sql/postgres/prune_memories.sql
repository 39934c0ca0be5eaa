-- Forgets what agents remember of jobs that go. Differs from SQLite: an array.
DELETE FROM memories WHERE job_seq = ANY($1)
