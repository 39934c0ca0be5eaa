-- Moves rows of the tool journal; `sends` and `retries` are added.
UPDATE tool_calls
SET state = r.state, outcome = r.outcome, duration_ms = r.duration_ms, withheld = r.withheld,
    again = CASE WHEN r.state = 'settled' THEN 0 ELSE tool_calls.again END,
    sends = tool_calls.sends + r.sends,
    retries = tool_calls.retries + r.retries,
    tried = CASE WHEN r.tried IS NULL THEN tool_calls.tried ELSE COALESCE(tool_calls.tried || ',', '') || r.tried END,
    handled = COALESCE(r.handled, tool_calls.handled),
    provider = COALESCE(r.provider, tool_calls.provider),
    started_at = CASE WHEN r.state = 'sent' THEN COALESCE(tool_calls.started_at, r.at) ELSE tool_calls.started_at END,
    completed_at = CASE WHEN r.state = 'settled' THEN r.at END
FROM {rows: call_id, state, outcome, duration_ms, withheld, sends, retries, tried, handled, provider, at}
WHERE tool_calls.call_id = r.call_id
