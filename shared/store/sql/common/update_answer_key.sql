-- The answer to call $1 was given by the key $2.
UPDATE tool_calls SET answered_by = $2 WHERE call_id = $1
