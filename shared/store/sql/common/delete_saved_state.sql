-- Forgets a saved state.
DELETE FROM saved_states WHERE job_seq = $1
