-- Moves rows of the tool journal; `sends` and `retries` are added. $1: JSON [[call_id, state, outcome, duration_ms, withheld,
-- sends to add, retries to add, a failed try, what a handler did, the tool that is called instead, now], …].
-- Differs from PostgreSQL: json_each.
UPDATE tool_calls
SET state = r.value ->> 1, outcome = r.value ->> 2, duration_ms = r.value ->> 3, withheld = r.value ->> 4,
    again = CASE WHEN r.value ->> 1 = 'settled' THEN 0 ELSE again END,
    sends = sends + (r.value ->> 5),
    retries = retries + (r.value ->> 6),
    tried = CASE WHEN r.value ->> 7 IS NULL THEN tried ELSE COALESCE(tried || ',', '') || (r.value ->> 7) END,
    handled = COALESCE(r.value ->> 8, handled),
    provider = COALESCE(r.value ->> 9, provider),
    started_at = CASE WHEN r.value ->> 1 = 'sent' THEN COALESCE(started_at, r.value ->> 10) ELSE started_at END,
    completed_at = CASE WHEN r.value ->> 1 = 'settled' THEN r.value ->> 10 END
FROM json_each($1) AS r
WHERE tool_calls.call_id = r.value ->> 0
