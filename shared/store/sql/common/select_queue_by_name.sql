-- One queue.
SELECT q.name, q.paused, q.config, q.pool, q.weight, q.created_at, q.max_depth, q.max_bytes, q.warn_at, q.concurrency, q.rate, q.period_ms, q.throttle_ms, q.keep_completed_ms, q.keep_discarded_ms, q.keep_cancelled_ms FROM queues AS q WHERE q.name = $1
