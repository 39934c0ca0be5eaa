-- The bounds of queues. Nobody else enqueues into them until this transaction ends.
SELECT q.name, q.max_depth, q.max_bytes, q.warn_at
FROM queues AS q
WHERE q.name {in: names}
ORDER BY q.name
{lock}
