-- Moves rows of the tool journal; `sends` is added.
-- Differs from SQLite: an array per column.
UPDATE tool_calls
SET state = r.state, outcome = r.outcome, duration_ms = r.duration_ms, withheld = r.withheld,
    again = CASE WHEN r.state = 'settled' THEN 0 ELSE tool_calls.again END,
    sends = tool_calls.sends + r.sends
FROM unnest($1, $2, $3, $4, $5, $6) AS r (call_id, state, outcome, duration_ms, withheld, sends)
WHERE tool_calls.call_id = r.call_id
