-- How many jobs ended from $1 on, per state. $2 tenant; NULL matches all.
SELECT j.state, count(*) AS jobs
FROM jobs AS j
WHERE j.ended_at >= $1 AND ($2 IS NULL OR j.tenant = $2)
GROUP BY j.state
