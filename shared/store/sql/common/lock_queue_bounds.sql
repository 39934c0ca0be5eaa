-- The bounds of queues. No other transaction enqueues into them until this one ends.
SELECT q.name, q.max_depth, q.max_bytes, q.warn_at
FROM queues AS q
WHERE q.name {in: names}
ORDER BY q.name
{lock}
