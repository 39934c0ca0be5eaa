-- Which of these ids are taken, and which of these queues have a bound. Rows: id, queue.
-- Differs from SQLite: an array per column.
SELECT j.id, NULL AS queue FROM jobs AS j WHERE j.id = ANY($1)
UNION ALL
SELECT NULL, q.name FROM queues AS q
WHERE q.name = ANY($2) AND coalesce(q.max_depth, q.max_bytes, q.warn_at) IS NOT NULL
