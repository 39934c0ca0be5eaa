-- The priority of the agent job that goes first in each queue whose jobs can be claimed at once. One row is looked for in each
-- queue, in the order of the index that has it.
SELECT q.name,
       (SELECT j.priority FROM jobs AS j
        WHERE j.state = 'available' AND j.held = 0 AND j.set_aside = 0 AND j.kind = 'agent' AND j.queue = q.name
        ORDER BY j.priority DESC, j.seq LIMIT 1) AS priority
FROM queues AS q
WHERE q.paused = 0 AND coalesce(q.concurrency, q.rate, q.throttle_ms) IS NULL
