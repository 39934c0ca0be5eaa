-- Events of runs: engagement id, number, job id, body. Differs from SQLite: an array per column.
INSERT INTO run_events (engagement_seq, id, job_seq, body)
SELECT e.seq, r.id, coalesce(j.seq, 0), r.body
FROM unnest($1, $2, $3, $4) AS r(run, id, job, body)
JOIN engagements AS e ON e.id = r.run
LEFT JOIN jobs AS j ON j.id = r.job
