-- The queues of pools, with what was claimed from them.
SELECT q.name, q.pool, q.weight, q.claims, p.strategy, p.updated_at
FROM queues AS q
JOIN pools AS p ON p.name = q.pool
ORDER BY q.pool, q.name
