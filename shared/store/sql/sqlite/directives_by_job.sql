-- The meta of jobs that may tell their worker what to do, and of those whose meta is sealed. $1: JSON [[seq], …]. Differs from PostgreSQL: json_each.
SELECT t.job_seq, t.meta
FROM json_each($1) AS r
JOIN job_envelopes AS t ON t.job_seq = r.value ->> 0
  AND (t.meta LIKE '%"test_directive"%' OR t.meta LIKE 'sealed:1:%')
