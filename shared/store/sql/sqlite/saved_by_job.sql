-- What workers over HTTP saved of their progress. $1: JSON [[seq], …]. Differs from PostgreSQL: json_each.
SELECT t.job_seq, t.state, t.sequence, t.at
FROM json_each($1) AS r
JOIN saved_states AS t ON t.job_seq = r.value ->> 0
