SELECT v.last_event, v.commit_id
--- select_newest_event_of_engagement
-- The newest event of an engagement.
FROM engagements AS e
JOIN journal AS v ON v.stream = e.seq
WHERE e.id = $1 AND v.events > 0
ORDER BY v.last_event DESC
LIMIT 1
--- select_newest_event_of_job
-- The newest event of the stream that has the events of a job.
FROM jobs AS j
JOIN journal AS v ON v.stream = j.stream
WHERE j.id = $1 AND v.events > 0
ORDER BY v.last_event DESC
LIMIT 1
