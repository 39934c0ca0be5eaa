-- Counts children that engagements have got. $1: JSON [[seq, how many], …]. Differs from PostgreSQL: json_each.
UPDATE engagements SET children = children + (r.value ->> 1)
FROM json_each($1) AS r
WHERE engagements.seq = r.value ->> 0
