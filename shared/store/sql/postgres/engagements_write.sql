-- Moves the counters of engagements.
-- Differs from SQLite: an array per column.
UPDATE engagements
SET turns    = r.turns,
    events   = r.events,
    messages = r.messages
FROM unnest($1, $2, $3, $4, $5, $6)
     AS r (seq, turns, events, messages, read_events, read_messages)
WHERE engagements.seq = r.seq AND engagements.events = r.read_events AND engagements.messages = r.read_messages
