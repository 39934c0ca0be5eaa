-- The limit of a queue and its use, in the form of a limit that jobs name.
SELECT q.name, NULL AS asked, CAST(0 AS BIGINT) AS overridden, q.concurrency, q.rate, q.period_ms, q.throttle_ms, q.window_at, q.started,
       q.next_at, q.opens_at,
       (SELECT count(*) FROM jobs AS j WHERE j.state = 'active' AND j.queue = q.name) AS active,
       CAST(0 AS BIGINT) AS waiting_count
FROM queues AS q
WHERE q.name = $1
