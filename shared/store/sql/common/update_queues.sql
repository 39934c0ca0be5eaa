UPDATE queues
--- update_claimed_queues
-- The use of queues by a claim.
SET pass      = r.pass,
    claims    = r.claims,
    window_at = r.window_at,
    started   = r.started,
    next_at   = r.next_at,
    opens_at  = r.opens_at
FROM {rows: name, pass, claims, window_at, started, next_at, opens_at}
WHERE queues.name = r.name
--- update_opened_queues
-- Queues whose limit allows something again at $1: the waiting jobs are released once.
SET opens_at = NULL WHERE opens_at <= $1
--- update_queue_limit
-- The limit that jobs of a queue named last.
SET concurrency = $2, rate = $3, period_ms = $4, throttle_ms = $5 WHERE name = $1
--- update_queue_without_pool
-- Takes all queues out of a pool.
SET pool = NULL, weight = 1, pass = 0, claims = 0 WHERE pool = $1
--- update_queues_of_pool
-- Puts queues into a pool.
SET pool = r.pool, weight = r.weight, pass = r.pass, claims = 0
FROM {rows: name, pool, weight, pass}
WHERE queues.name = r.name
