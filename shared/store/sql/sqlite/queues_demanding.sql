-- Queues that do not take every job. $1: JSON rows. Differs from PostgreSQL: json_each.
SELECT q.name, q.config
FROM json_each($1) AS r
JOIN queues AS q ON q.name = r.value ->> 0
WHERE q.config LIKE '%"attest_policy"%'
