-- A job with a tag, if there is one. $1 tag, $2 tenant; NULL matches all.
SELECT t.job_seq
FROM job_tags AS t
JOIN jobs AS j ON j.seq = t.job_seq
WHERE t.tag = $1 AND ($2 IS NULL OR j.tenant = $2)
LIMIT 1
