-- What workers over HTTP saved of their progress. $1: seqs. Differs from SQLite: an array.
SELECT t.job_seq, t.state, t.sequence, t.at
FROM saved_states AS t
WHERE t.job_seq = ANY($1)
