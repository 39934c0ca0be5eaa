-- Requests of the run of engagement $1, in the order in which they began.
SELECT j.id AS job_id, q.began, q.ended, q.seen
FROM engagements AS e
JOIN run_requests AS q ON q.engagement_seq = e.seq
JOIN jobs AS j ON j.seq = q.job_seq
WHERE e.id = $1
ORDER BY q.began
