-- A page of the rows with the checkpoints of an engagement's jobs, without those that it reads of others.
SELECT {columns of checkpoints}, j.id AS job_id, v.job_seq
FROM engagements AS e
JOIN jobs AS j ON j.engagement_seq = e.seq
JOIN journal AS v ON v.stream = e.seq AND v.job_seq = j.seq AND v.phases > 0
WHERE e.id = $1
ORDER BY v.turn, v.phase, v.last_event
LIMIT $2 OFFSET $3
