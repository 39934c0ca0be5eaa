-- What tool calls cost. Differs from SQLite: an array per column.
UPDATE tool_calls SET cost = tool_calls.cost + r.cost FROM unnest($1, $2) AS r (call_id, cost)
WHERE tool_calls.call_id = r.call_id
