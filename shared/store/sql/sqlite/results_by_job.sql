-- Results of jobs. $1: JSON [[seq], …]. Differs from PostgreSQL: json_each.
SELECT t.job_seq, t.result
FROM json_each($1) AS r
JOIN job_results AS t ON t.job_seq = r.value ->> 0
