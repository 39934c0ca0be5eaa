-- Counts further inputs that engagements have got, and their events.
UPDATE totals SET events = r.events, inputs = r.inputs
FROM {rows: seq, events, inputs}
WHERE totals.seq = r.seq
