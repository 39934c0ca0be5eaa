-- The reads before a push: a number for each job and for $2 others, which of their ids are taken by jobs of which tenants,
-- and which of their queues have a bound or do not take every job. $1: JSON rows of ids and queues. Rows: a number, an id,
-- or a queue.
-- Engagements, totals and workflows take numbers of their own or of their first job, and so do events that belong to no job.
-- Differs from PostgreSQL: json_each; one writer, so the numbers follow the highest one.
WITH RECURSIVE n (i) AS (
    SELECT 1 WHERE json_array_length($1) + $2 > 0
    UNION ALL
    SELECT i + 1 FROM n WHERE i < json_array_length($1) + $2
)
SELECT i + (SELECT coalesce(max(seq), 0)
            FROM (SELECT max(seq) AS seq FROM jobs
                  UNION ALL SELECT max(seq) FROM workflows
                  UNION ALL SELECT max(seq) FROM totals
                  UNION ALL SELECT max(stream) FROM journal)) AS seq,
       NULL AS id, NULL AS queue, NULL AS bounded, NULL AS config, NULL AS tenant
FROM n
UNION ALL
SELECT NULL, j.id, NULL, NULL, NULL, j.tenant
FROM json_each($1) AS r
JOIN jobs AS j ON j.id IN (r.value ->> 0, substr(r.value ->> 0, 1, 36))
UNION ALL
SELECT NULL, NULL, q.name, CASE WHEN coalesce(q.max_depth, q.max_bytes, q.warn_at) IS NULL THEN 0 ELSE 1 END, q.config, NULL
FROM queues AS q
WHERE q.name IN (SELECT r.value ->> 1 FROM json_each($1) AS r)
  AND (coalesce(q.max_depth, q.max_bytes, q.warn_at) IS NOT NULL OR q.config LIKE '%"attest_policy"%')
