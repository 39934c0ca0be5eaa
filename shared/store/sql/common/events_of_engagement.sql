-- Events of an engagement after a position, oldest first.
SELECT v.stream, v.seq, v.name, j.id AS job_id, e.id AS engagement_id, v.turn, v.data, v.at,
       v.tx, j.job_type, j.queue, j.tenant, e.agent_name
FROM engagements AS e
JOIN events AS v ON v.stream = e.seq
JOIN jobs AS j ON j.seq = v.job_seq
WHERE e.id = $1 AND v.seq > $2
ORDER BY v.seq
LIMIT $3
