-- Queues that have a job of kind $1 which is available, or due at $2 and not promoted yet.
SELECT q.name
FROM queues AS q
WHERE EXISTS (SELECT 1 FROM jobs AS j WHERE j.state = 'available' AND j.kind = $1 AND j.queue = q.name)
   OR EXISTS (SELECT 1 FROM jobs AS j
              WHERE j.state IN ('scheduled', 'retryable') AND j.run_at <= $2 AND j.kind = $1 AND j.queue = q.name)
ORDER BY q.name
