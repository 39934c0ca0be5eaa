-- Open reviews about jobs with a tag. $1 tag, $2 tenant; NULL matches all.
SELECT count(*) AS reviews
FROM job_tags AS t
JOIN jobs AS j ON j.seq = t.job_seq
JOIN reviews AS v ON v.job_seq = j.seq AND v.state = 'open'
WHERE t.tag = $1 AND ($2 IS NULL OR j.tenant = $2)
