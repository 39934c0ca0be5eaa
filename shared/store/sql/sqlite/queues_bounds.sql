-- The bounds of queues. Nobody else enqueues into them until this transaction ends.
-- $1: JSON rows. Differs from PostgreSQL: json_each, and there the rows are locked.
SELECT q.name, q.max_depth, q.max_bytes, q.warn_at
FROM json_each($1) AS r
JOIN queues AS q ON q.name = r.value ->> 0
