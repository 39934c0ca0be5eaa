SELECT j.state, count(*) AS jobs
FROM jobs AS j
--- select_state_counts
-- Jobs per state. $1 queue, $2 tenant; NULL matches all.
WHERE ($1 IS NULL OR j.queue = $1) AND ($2 IS NULL OR j.tenant = $2)
GROUP BY j.state
--- select_ended_recently
-- How many jobs ended from $1 on, per state. $2 tenant; NULL matches all.
WHERE j.ended_at >= $1 AND ($2 IS NULL OR j.tenant = $2)
GROUP BY j.state
