-- Events of runs.
INSERT INTO run_events (engagement_seq, id, job_seq, body)
SELECT e.seq, r.id, coalesce(j.seq, 0), r.body
FROM {rows: run_id, id, job, body}
JOIN engagements AS e ON e.id = r.run_id
LEFT JOIN jobs AS j ON j.id = r.job
