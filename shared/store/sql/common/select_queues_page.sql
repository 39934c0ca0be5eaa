-- Queues by name, at most $1 after $2. $3: only those in which this tenant has a job; NULL for all.
SELECT q.name, q.paused, q.config, q.pool, q.weight, q.created_at, q.max_depth, q.max_bytes, q.warn_at, q.concurrency, q.rate, q.period_ms, q.throttle_ms, q.keep_completed_ms, q.keep_discarded_ms, q.keep_cancelled_ms
FROM queues AS q
WHERE $3 IS NULL OR EXISTS (SELECT 1 FROM jobs AS j WHERE j.tenant = $3 AND j.queue = q.name)
ORDER BY q.name
LIMIT $1 OFFSET $2
