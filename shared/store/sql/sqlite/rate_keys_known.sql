-- What jobs asked of these limits last.
-- $1: JSON rows. Differs from PostgreSQL: json_each.
SELECT k.name, k.asked
FROM json_each($1) AS r
JOIN rate_keys AS k ON k.name = r.value ->> 0
