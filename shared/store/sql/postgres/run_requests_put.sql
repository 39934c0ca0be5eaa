-- Requests of runs: engagement id, job id, began, ended. Differs from SQLite: an array per column.
INSERT INTO run_requests (job_seq, engagement_seq, began, ended)
SELECT j.seq, e.seq, r.began, r.ended
FROM unnest($1, $2, $3, $4) AS r(run, job, began, ended)
JOIN engagements AS e ON e.id = r.run
JOIN jobs AS j ON j.id = r.job
ON CONFLICT (job_seq) DO UPDATE SET ended = coalesce(run_requests.ended, excluded.ended)
