-- How many queues there are. $1: only those in which this tenant has a job; NULL for all.
SELECT count(*) AS queues
FROM queues AS q
WHERE $1 IS NULL OR EXISTS (SELECT 1 FROM jobs AS j WHERE j.tenant = $1 AND j.queue = q.name)
