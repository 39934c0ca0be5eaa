-- The meta of jobs that may tell their worker what to do, and of those whose meta is sealed. $1: seqs. Differs from SQLite: an array.
SELECT t.job_seq, t.meta
FROM job_envelopes AS t
WHERE t.job_seq = ANY($1)
  AND (t.meta LIKE '%"test_directive"%' OR t.meta LIKE 'sealed:1:%')
