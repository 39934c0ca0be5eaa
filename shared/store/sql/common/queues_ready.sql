-- Queues that have a job of kind $1 which is available, or due at $2 and not promoted yet. One row is looked for in
-- each, in the order of the index that has it: `EXISTS`, or a row in any order, lets PostgreSQL read the whole table
-- when it thinks that such rows are many, and then there are none of this kind or queue.
SELECT q.name
FROM queues AS q
WHERE coalesce((SELECT 1 FROM jobs AS j WHERE j.state = 'available' AND j.held = 0 AND j.kind = $1 AND j.queue = q.name
                ORDER BY j.priority DESC, j.seq LIMIT 1),
               (SELECT 1 FROM jobs AS j
                WHERE j.state IN ('scheduled', 'retryable') AND j.run_at <= $2 AND j.kind = $1 AND j.queue = q.name
                ORDER BY j.run_at LIMIT 1)) = 1
ORDER BY q.name
