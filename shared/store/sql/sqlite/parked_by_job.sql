-- What parked jobs wait for: the newest event that says so. $1: JSON [[seq], …]. Differs from PostgreSQL: json_each.
SELECT j.seq AS job_seq, v.stream, v.seq, v.data
FROM json_each($1) AS r
JOIN jobs AS j ON j.seq = r.value ->> 0
JOIN events AS v ON v.stream = j.stream AND v.seq = (
    SELECT w.seq
    FROM events AS w
    WHERE w.stream = j.stream AND w.job_seq = j.seq AND w.name = 'job.parked'
    ORDER BY w.seq DESC
    LIMIT 1
)
