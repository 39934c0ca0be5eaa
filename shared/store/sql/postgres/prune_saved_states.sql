-- Deletes the saved states of jobs that are pruned. Differs from SQLite: an array.
DELETE FROM saved_states WHERE job_seq = ANY($1)
