-- The reads before a push: a number for each job and for $3 others, which of the ids $1 are taken by jobs of which tenants,
-- and which of the queues $2 have a bound or do not take every job. Rows: a number, an id, or a queue.
-- Differs from SQLite: an array per column; many writers, so a sequence gives the numbers.
SELECT nextval('jobs_seq') AS seq, NULL AS id, NULL AS queue, CAST(NULL AS BIGINT) AS bounded, NULL AS config, NULL AS tenant
FROM generate_series(1, cardinality($1) + $3)
UNION ALL
SELECT NULL, j.id, NULL, NULL, NULL, j.tenant FROM jobs AS j WHERE j.id = ANY($1)
UNION ALL
SELECT NULL, j.id, NULL, NULL, NULL, j.tenant
FROM (SELECT substr(i, 1, 36) AS id FROM unnest($1) AS i WHERE substr(i, 37, 1) = '~') AS r
JOIN jobs AS j ON j.id = r.id
UNION ALL
SELECT NULL, NULL, q.name, CASE WHEN coalesce(q.max_depth, q.max_bytes, q.warn_at) IS NULL THEN 0 ELSE 1 END, q.config, NULL
FROM queues AS q
WHERE q.name = ANY($2) AND (coalesce(q.max_depth, q.max_bytes, q.warn_at) IS NOT NULL OR q.config LIKE '%"attest_policy"%')
