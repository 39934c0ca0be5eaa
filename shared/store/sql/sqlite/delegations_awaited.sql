-- Jobs that wait for others, of these. $1: JSON [[parent_seq], …]. Differs from PostgreSQL: json_each.
SELECT DISTINCT d.parent_seq
FROM json_each($1) AS r
JOIN delegations AS d ON d.parent_seq = r.value ->> 0
WHERE d.state = 'open' AND d.call_id IS NOT NULL
