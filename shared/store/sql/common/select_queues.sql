-- The queues that are known.
SELECT name FROM queues ORDER BY name
