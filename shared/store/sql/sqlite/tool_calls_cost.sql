-- What tool calls cost. $1: JSON [[call id, money], …]. Differs from PostgreSQL: json_each.
UPDATE tool_calls SET cost = cost + (r.value ->> 1) FROM json_each($1) AS r WHERE tool_calls.call_id = r.value ->> 0
