-- Moves the counters of engagements. $1: JSON [[seq, turns, events, messages, events and messages as read], …]. Differs from PostgreSQL: json_each.
UPDATE engagements
SET turns = r.value ->> 1, events = r.value ->> 2, messages = r.value ->> 3
FROM json_each($1) AS r
WHERE engagements.seq = r.value ->> 0 AND engagements.events = r.value ->> 4 AND engagements.messages = r.value ->> 5
