-- Counts further inputs that engagements have got, and their events. Differs from SQLite: an array per column.
UPDATE totals SET events = r.events, inputs = r.inputs
FROM unnest($1, $2, $3) AS r (seq, events, inputs)
WHERE totals.seq = r.seq
