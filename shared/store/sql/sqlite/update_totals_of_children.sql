-- Counts children that engagements have got. $1: JSON [[seq, how many], …]. Differs from PostgreSQL: json_each.
UPDATE totals SET children = children + (r.value ->> 1)
FROM json_each($1) AS r
WHERE totals.seq = r.value ->> 0
