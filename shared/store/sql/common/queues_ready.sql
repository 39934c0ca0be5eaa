-- Queues that have a job of kind $1 which is available, or due at $2 and not promoted yet. One row is looked for in
-- each: `EXISTS` would let PostgreSQL gather every available job first.
SELECT q.name
FROM queues AS q
WHERE coalesce((SELECT 1 FROM jobs AS j WHERE j.state = 'available' AND j.kind = $1 AND j.queue = q.name LIMIT 1),
               (SELECT 1 FROM jobs AS j
                WHERE j.state IN ('scheduled', 'retryable') AND j.run_at <= $2 AND j.kind = $1 AND j.queue = q.name
                LIMIT 1)) = 1
ORDER BY q.name
