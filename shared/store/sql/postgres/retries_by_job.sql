-- When and how often jobs are tried again. $1: seqs. Differs from SQLite: an array.
SELECT t.job_seq, t.retry
FROM job_envelopes AS t
WHERE t.job_seq = ANY($1)
