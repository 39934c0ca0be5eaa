-- The jobs with a tag, by state. $1 tag, $2 tenant; NULL matches all.
SELECT j.state, count(*) AS jobs, min(j.created_at) AS first_at, max(j.ended_at) AS last_at
FROM job_tags AS t
JOIN jobs AS j ON j.seq = t.job_seq
WHERE t.tag = $1 AND ($2 IS NULL OR j.tenant = $2)
GROUP BY j.state
ORDER BY j.state
