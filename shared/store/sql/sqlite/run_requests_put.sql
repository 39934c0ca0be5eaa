-- Requests of runs. $1: JSON [[engagement id, job id, began, ended], …]. Differs from PostgreSQL: json_each.
INSERT INTO run_requests (job_seq, engagement_seq, began, ended)
SELECT j.seq, e.seq, r.value ->> 2, r.value ->> 3
FROM json_each($1) AS r
JOIN engagements AS e ON e.id = r.value ->> 0
JOIN jobs AS j ON j.id = r.value ->> 1
WHERE true
ON CONFLICT (job_seq) DO UPDATE SET ended = coalesce(run_requests.ended, excluded.ended)
