-- Queues that do not take every job. $1: names. Differs from SQLite: an array.
SELECT q.name, q.config
FROM unnest($1) AS r (name)
JOIN queues AS q ON q.name = r.name
WHERE q.config LIKE '%"attest_policy"%'
