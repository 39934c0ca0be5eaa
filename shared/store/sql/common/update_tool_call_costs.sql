-- What tool calls cost.
UPDATE tool_calls SET cost = tool_calls.cost + r.cost FROM {rows: call_id, cost}
WHERE tool_calls.call_id = r.call_id
