-- Events of runs. $1: JSON [[engagement id, number, job id, body], …]. Differs from PostgreSQL: json_each.
INSERT INTO run_events (engagement_seq, id, job_seq, body)
SELECT e.seq, r.value ->> 1, coalesce(j.seq, 0), r.value ->> 3
FROM json_each($1) AS r
JOIN engagements AS e ON e.id = r.value ->> 0
LEFT JOIN jobs AS j ON j.id = r.value ->> 2
