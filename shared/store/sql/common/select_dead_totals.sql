-- Dead letters per queue and type, with when the first and the last of them ended. $1 tenant; NULL matches all.
SELECT j.queue, j.job_type, count(*) AS jobs, min(j.ended_at) AS first_at, max(j.ended_at) AS last_at
FROM jobs AS j
WHERE j.state = 'discarded' AND j.dead_letter = 1 AND ($1 IS NULL OR j.tenant = $1)
GROUP BY j.queue, j.job_type
ORDER BY j.queue, j.job_type
