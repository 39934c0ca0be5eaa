-- How long all queues keep their ended jobs, if one of them keeps them for a time of its own; nothing otherwise.
SELECT q.name, q.keep_completed_ms, q.keep_discarded_ms, q.keep_cancelled_ms
FROM queues AS q
WHERE EXISTS (SELECT 1 FROM queues AS k
              WHERE coalesce(k.keep_completed_ms, k.keep_discarded_ms, k.keep_cancelled_ms) IS NOT NULL)
ORDER BY q.name
