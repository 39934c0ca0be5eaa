-- Deletes the progress of jobs that are pruned. Differs from SQLite: an array.
DELETE FROM progress WHERE job_seq = ANY($1)
