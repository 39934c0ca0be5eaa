-- Counts children that engagements have got. Differs from SQLite: an array per column.
UPDATE engagements SET children = children + r.many
FROM unnest($1, $2) AS r (seq, many)
WHERE engagements.seq = r.seq
