-- When and how often jobs are tried again. $1: JSON [[seq], …]. Differs from PostgreSQL: json_each.
SELECT t.job_seq, t.retry
FROM json_each($1) AS r
JOIN job_envelopes AS t ON t.job_seq = r.value ->> 0
