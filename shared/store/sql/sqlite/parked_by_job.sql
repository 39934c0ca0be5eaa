-- The rows with what parked jobs wait for: the newest event that says so. $1: JSON [[seq], …]. Differs from PostgreSQL: json_each.
SELECT j.seq AS job_seq, v.stream, v.last_event, v.last_message, v.events, v.turn, v.phase, v.names, v.at, v.body
FROM json_each($1) AS r
JOIN jobs AS j ON j.seq = r.value ->> 0
JOIN journal AS v ON v.stream = j.stream AND v.events > 0 AND v.last_event = (
    SELECT w.last_event
    FROM journal AS w
    WHERE w.stream = j.stream AND w.job_seq = j.seq AND ',' || w.names || ',' LIKE '%,job.parked,%'
    ORDER BY w.last_event DESC
    LIMIT 1
)
