-- The next $1 numbers for jobs. An engagement and its totals take the number of their first job; workflows and events
-- that belong to no job take numbers of their own.
-- Differs from PostgreSQL: one writer, so the numbers follow the highest one.
WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $1)
SELECT i + (SELECT coalesce(max(seq), 0)
            FROM (SELECT max(seq) AS seq FROM jobs
                  UNION ALL SELECT max(seq) FROM workflows
                  UNION ALL SELECT max(seq) FROM totals
                  UNION ALL SELECT max(stream) FROM journal)) AS seq
FROM n
