-- Failed attempts of jobs, oldest first. $1: JSON [[seq], …]. Differs from PostgreSQL: json_each.
SELECT t.job_seq, t.attempt, t.error, t.at
FROM json_each($1) AS r
JOIN job_errors AS t ON t.job_seq = r.value ->> 0
ORDER BY t.job_seq, t.failure
