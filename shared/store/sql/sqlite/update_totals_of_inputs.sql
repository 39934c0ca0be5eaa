-- Counts further inputs that engagements have got, and their events. $1: JSON [[seq, events and inputs after it], …].
-- Differs from PostgreSQL: json_each.
UPDATE totals SET events = r.value ->> 1, inputs = r.value ->> 2
FROM json_each($1) AS r
WHERE totals.seq = r.value ->> 0
