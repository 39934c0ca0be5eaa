-- Queues that have an available job of kind $1.
SELECT q.name
FROM queues AS q
WHERE EXISTS (SELECT 1 FROM jobs AS j WHERE j.state = 'available' AND j.kind = $1 AND j.queue = q.name)
ORDER BY q.name
