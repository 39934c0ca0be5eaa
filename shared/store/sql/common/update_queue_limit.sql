-- The limit that jobs of a queue named last.
UPDATE queues SET concurrency = $2, rate = $3, period_ms = $4, throttle_ms = $5 WHERE name = $1
