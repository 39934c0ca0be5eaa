-- Queues that have a job of kind $1 which a claim at $2 may take, and those that have a limit. A job is ready when it is
-- available, or due and not promoted yet, or set aside for a limit that allows it again. One row is looked for in each
-- queue, in the order of the index that has it: `EXISTS`, or a row in any order, lets PostgreSQL read the whole table
-- when it thinks that such rows are many, and then there are none of this kind or queue.
SELECT r.name, r.pool, r.limited, r.ready, r.set_aside, r.capped,
       CAST(CASE WHEN EXISTS (SELECT 1 FROM budget_rules) THEN 1 ELSE 0 END AS BIGINT) AS budgeted
FROM (SELECT q.name, q.pool,
             CAST(CASE WHEN coalesce(q.concurrency, q.rate, q.throttle_ms) IS NULL THEN 0 ELSE 1 END AS BIGINT) AS limited,
             CAST(CASE
                 WHEN q.paused = 1 OR q.next_at > $2 THEN 0
                 WHEN q.concurrency <= (SELECT count(*) FROM jobs AS j WHERE j.state = 'active' AND j.queue = q.name) THEN 0
                 ELSE coalesce(
                     (SELECT 1 FROM jobs AS j
                      WHERE j.state = 'available' AND j.held = 0 AND j.set_aside = 0 AND j.kind = $1 AND j.queue = q.name
                      ORDER BY j.priority DESC, j.seq LIMIT 1),
                     (SELECT 1 FROM jobs AS j
                      WHERE j.state IN ('scheduled', 'retryable') AND j.run_at <= $2 AND j.kind = $1 AND j.queue = q.name
                      ORDER BY j.run_at LIMIT 1),
                     (SELECT 1 FROM rate_keys AS k
                      WHERE k.waiting = 1 AND k.next_at <= $2
                        AND (k.concurrency IS NULL
                             OR k.concurrency > (SELECT count(*) FROM jobs AS j
                                                 WHERE j.state = 'active' AND j.limit_key = k.name))
                        AND (SELECT 1 FROM jobs AS j
                             WHERE j.limit_key = k.name AND j.queue = q.name AND j.kind = $1 AND j.state = 'available'
                               AND j.set_aside = 1
                             ORDER BY j.priority DESC, j.seq LIMIT 1) = 1
                      LIMIT 1),
                     0) END AS BIGINT) AS ready,
             CAST(coalesce((SELECT 1 FROM rate_keys AS k WHERE k.waiting = 1 AND k.next_at <= $2 LIMIT 1), 0) AS BIGINT)
                 AS set_aside,
             CAST(coalesce((SELECT 1 FROM tenant_limits AS t WHERE t.max_concurrency IS NOT NULL LIMIT 1), 0) AS BIGINT) AS capped
      FROM queues AS q) AS r
WHERE r.ready = 1 OR r.limited = 1
ORDER BY r.name
