-- Somebody was told that call $1 asks.
UPDATE tool_calls SET told = 1 WHERE call_id = $1 AND told = 0
