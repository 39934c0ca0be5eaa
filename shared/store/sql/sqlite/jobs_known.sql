-- Which of these ids are taken, and which of these queues have a bound. Rows: id, queue.
-- $1: JSON rows. Differs from PostgreSQL: json_each.
SELECT j.id, NULL AS queue FROM json_each($1) AS r JOIN jobs AS j ON j.id = r.value ->> 0
UNION ALL
SELECT NULL, q.name FROM queues AS q
WHERE q.name IN (SELECT r.value ->> 1 FROM json_each($1) AS r) AND coalesce(q.max_depth, q.max_bytes, q.warn_at) IS NOT NULL
