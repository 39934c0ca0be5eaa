-- Moves rows of the tool journal. $1: JSON [[call_id, state, outcome, duration_ms, withheld, sends to add], …].
-- Differs from PostgreSQL: json_each.
UPDATE tool_calls
SET state = r.value ->> 1, outcome = r.value ->> 2, duration_ms = r.value ->> 3, withheld = r.value ->> 4,
    again = CASE WHEN r.value ->> 1 = 'settled' THEN 0 ELSE again END,
    sends = sends + (r.value ->> 5)
FROM json_each($1) AS r
WHERE tool_calls.call_id = r.value ->> 0
