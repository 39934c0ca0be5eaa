-- Counts children that engagements have got.
UPDATE totals SET children = children + r.many
FROM {rows: seq, many}
WHERE totals.seq = r.seq
