-- Queues with limits or in pools, to be claimed from.
-- Differs from SQLite: an array, and rows are locked; those that somebody else has are left out.
SELECT q.name, q.pool, q.weight, q.pass, q.claims, q.concurrency, q.rate, q.period_ms, q.throttle_ms, q.window_at, q.started, q.next_at, q.opens_at
FROM queues AS q
WHERE q.name = ANY($1)
ORDER BY q.name
FOR UPDATE SKIP LOCKED
