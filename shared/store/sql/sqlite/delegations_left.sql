-- Jobs that work for these and have not ended. $1: JSON [[parent_seq], …]. Differs from PostgreSQL: json_each.
SELECT j.id
FROM json_each($1) AS r
JOIN delegations AS d ON d.parent_seq = r.value ->> 0
JOIN jobs AS j ON j.seq = d.job_seq
WHERE d.state = 'open' AND j.ended_at IS NULL
