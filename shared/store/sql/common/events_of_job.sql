-- Events of one job after a position of its stream, oldest first.
SELECT v.stream, v.seq, v.name, j.id AS job_id, e.id AS engagement_id, v.turn, v.data, v.at,
       v.tx, j.job_type, j.queue, j.tenant, e.agent_name
FROM jobs AS j
JOIN events AS v ON v.stream = j.stream AND v.job_seq = j.seq
LEFT JOIN engagements AS e ON e.seq = j.engagement_seq
WHERE j.id = $1 AND v.seq > $2
ORDER BY v.seq
LIMIT $3
