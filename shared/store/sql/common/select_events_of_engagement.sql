-- The rows of an engagement's journal with events after a position, oldest first.
SELECT v.stream, v.last_event, v.last_message, v.events, v.turn, v.phase, v.names, v.at, v.body, j.id AS job_id, e.id AS engagement_id, v.tx, j.job_type, j.queue, j.tenant, e.agent_name
FROM engagements AS e
JOIN journal AS v ON v.stream = e.seq
JOIN jobs AS j ON j.seq = v.job_seq
WHERE e.id = $1 AND v.last_event > $2 AND v.events > 0
ORDER BY v.last_event
LIMIT $3
