-- The next $1 numbers for jobs and workflows. An engagement and its budget take the number of their first job.
-- Differs from PostgreSQL: one writer, so the numbers follow the highest one.
WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $1)
SELECT i + max((SELECT coalesce(max(seq), 0) FROM jobs), (SELECT coalesce(max(seq), 0) FROM workflows)) AS seq FROM n
