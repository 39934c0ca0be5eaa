-- Queues with limits or in pools, to be claimed from.
-- $1: JSON rows. Differs from PostgreSQL: json_each, and there the rows are locked.
SELECT q.name, q.pool, q.weight, q.pass, q.claims, q.concurrency, q.rate, q.period_ms, q.throttle_ms, q.window_at, q.started, q.next_at, q.opens_at
FROM json_each($1) AS r
JOIN queues AS q ON q.name = r.value ->> 0
