-- What the engagements of streams refer to that may be of no use without them. $1: JSON [[seq], …].
-- Differs from PostgreSQL: json_each.
SELECT e.digest, e.budget_seq
FROM json_each($1) AS r
JOIN engagements AS e ON e.seq = r.value ->> 0
