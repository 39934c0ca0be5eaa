-- The meta of jobs that may direct their worker, and of those whose meta is sealed.
SELECT t.job_seq, t.meta
FROM job_envelopes AS t
WHERE t.job_seq {in: seqs}
  AND (t.meta LIKE '%"test_directive"%' OR t.meta LIKE 'sealed:1:%')
