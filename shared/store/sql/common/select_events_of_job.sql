-- The rows of the journal with events of one job after a position of its stream, oldest first.
SELECT v.stream, v.last_event, v.last_message, v.events, v.turn, v.phase, v.names, v.at, v.body, j.id AS job_id, e.id AS engagement_id, v.tx, j.job_type, j.queue, j.tenant, e.agent_name
FROM jobs AS j
JOIN journal AS v ON v.stream = j.stream AND v.job_seq = j.seq
LEFT JOIN engagements AS e ON e.seq = j.engagement_seq
WHERE j.id = $1 AND v.last_event > $2 AND v.events > 0
ORDER BY v.last_event
LIMIT $3
