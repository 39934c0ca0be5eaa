-- Jobs that do not wait when their limit is used up. Rows: seq.
-- $1: JSON rows. Differs from PostgreSQL: json_each.
SELECT j.seq, j.on_limit
FROM json_each($1) AS r
JOIN jobs AS j ON j.seq = r.value ->> 0
WHERE j.on_limit IS NOT NULL
