-- The bounds of queues. Nobody else enqueues into them until this transaction ends.
-- Differs from SQLite: an array, and the rows are locked.
SELECT q.name, q.max_depth, q.max_bytes, q.warn_at
FROM queues AS q
WHERE q.name = ANY($1)
ORDER BY q.name
FOR UPDATE
