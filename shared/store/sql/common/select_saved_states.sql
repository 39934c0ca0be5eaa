-- What workers over HTTP saved of their progress.
SELECT t.job_seq, t.state, t.sequence, t.at
FROM saved_states AS t
WHERE t.job_seq {in: seqs}
