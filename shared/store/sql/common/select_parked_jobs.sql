-- The rows with what parked jobs wait for: the newest event that says so.
SELECT j.seq AS job_seq, v.stream, v.last_event, v.last_message, v.events, v.turn, v.phase, v.names, v.at, v.body
FROM jobs AS j
JOIN journal AS v ON v.stream = j.stream AND v.events > 0 AND v.last_event = (
    SELECT w.last_event
    FROM journal AS w
    WHERE w.stream = j.stream AND w.job_seq = j.seq AND ',' || w.names || ',' LIKE '%,job.parked,%'
    ORDER BY w.last_event DESC
    LIMIT 1
)
WHERE j.seq {in: seqs}
