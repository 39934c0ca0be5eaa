-- Jobs of these queues per state. $2: only those of this tenant; NULL for all.
SELECT j.queue, j.state, count(*) AS jobs
FROM jobs AS j
WHERE j.queue {in: queues} AND ($2 IS NULL OR j.tenant = $2)
GROUP BY j.queue, j.state
