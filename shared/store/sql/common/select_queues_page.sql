SELECT {columns of queue}
FROM queues AS q
--- select_queues_page
-- Queues by name, at most $1 after $2. $3: only those in which this tenant has a job; NULL for all.
WHERE $3 IS NULL OR EXISTS (SELECT 1 FROM jobs AS j WHERE j.tenant = $3 AND j.queue = q.name)
ORDER BY q.name
LIMIT $1 OFFSET $2
--- select_queue_by_name
-- One queue.
WHERE q.name = $1
--- lock_queue
-- One queue, to be changed.
WHERE q.name = $1 {lock}
