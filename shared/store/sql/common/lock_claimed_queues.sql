-- Queues with limits or in pools, to be claimed from.
SELECT q.name, q.pool, q.weight, q.pass, q.claims, q.concurrency, q.rate, q.period_ms, q.throttle_ms, q.window_at, q.started, q.next_at, q.opens_at
FROM queues AS q
WHERE q.name {in: names}
ORDER BY q.name
{lock skip}
