-- The rows of the journal that belong to a job, whole, as they are stored. $1 id.
SELECT v.* FROM jobs AS j
JOIN journal AS v ON v.stream = j.stream AND v.job_seq = j.seq
WHERE j.id = $1
ORDER BY v.last_event, v.last_message, v.turn, v.phase
LIMIT 10000
