-- When and how often jobs are tried again.
SELECT t.job_seq, t.retry
FROM job_envelopes AS t
WHERE t.job_seq {in: seqs}
