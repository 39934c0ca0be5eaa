-- The members that clients gave to jobs.
SELECT v.job_seq, v.meta
FROM job_envelopes AS v
WHERE v.job_seq {in: seqs}
