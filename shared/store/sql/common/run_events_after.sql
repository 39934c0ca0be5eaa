-- Events of the run of engagement $1 after number $2, oldest first; $3 only those of this request; NULL stands for all, also
-- those of requests that are pruned already.
SELECT e.id AS run_id, v.id, v.body
FROM engagements AS e
JOIN run_events AS v ON v.engagement_seq = e.seq
LEFT JOIN jobs AS j ON j.seq = v.job_seq
WHERE e.id = $1 AND v.id > $2 AND ($3 IS NULL OR j.id = $3)
ORDER BY v.id
LIMIT $4
