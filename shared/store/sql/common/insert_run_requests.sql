-- Requests of runs.
INSERT INTO run_requests (job_seq, engagement_seq, began, ended)
SELECT j.seq, e.seq, r.began, r.ended
FROM {rows: run, job, began, ended}
JOIN engagements AS e ON e.id = r.run
JOIN jobs AS j ON j.id = r.job
WHERE true
ON CONFLICT (job_seq) DO UPDATE SET ended = coalesce(run_requests.ended, excluded.ended)
