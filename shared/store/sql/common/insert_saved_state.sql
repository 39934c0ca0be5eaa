-- Saves a state over the last one; the first is number 1.
INSERT INTO saved_states (job_seq, state, sequence, at)
SELECT r.job_seq, r.state, 1, r.at FROM {rows: job_seq, state, at}
WHERE true
ON CONFLICT (job_seq) DO UPDATE
SET state = excluded.state, sequence = saved_states.sequence + 1, at = excluded.at
RETURNING sequence
