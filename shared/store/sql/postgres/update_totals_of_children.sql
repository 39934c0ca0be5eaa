-- Counts children that engagements have got. Differs from SQLite: an array per column.
UPDATE totals SET children = children + r.many
FROM unnest($1, $2) AS r (seq, many)
WHERE totals.seq = r.seq
