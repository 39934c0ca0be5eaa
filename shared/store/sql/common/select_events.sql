SELECT {columns of event rows}
--- select_events_of_engagement
-- The rows of an engagement's journal with events after a position, oldest first.
FROM engagements AS e
JOIN journal AS v ON v.stream = e.seq
JOIN jobs AS j ON j.seq = v.job_seq
WHERE e.id = $1 AND v.last_event > $2 AND v.events > 0
ORDER BY v.last_event
LIMIT $3
--- select_events_of_job
-- The rows of the journal with events of one job after a position of its stream, oldest first.
FROM jobs AS j
JOIN journal AS v ON v.stream = j.stream AND v.job_seq = j.seq
LEFT JOIN engagements AS e ON e.seq = j.engagement_seq
WHERE j.id = $1 AND v.last_event > $2 AND v.events > 0
ORDER BY v.last_event
LIMIT $3
