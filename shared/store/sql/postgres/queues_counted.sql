-- Jobs of these queues per state. $2: only those of this tenant; NULL for all.
-- Differs from SQLite: an array.
SELECT j.queue, j.state, count(*) AS jobs
FROM jobs AS j
WHERE j.queue = ANY($1) AND ($2 IS NULL OR j.tenant = $2)
GROUP BY j.queue, j.state
