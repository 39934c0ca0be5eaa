UPDATE tool_calls
--- update_tool_calls
-- Moves rows of the tool journal; `sends` and `retries` are added.
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
--- update_tool_call_costs
-- The costs of tool calls.
SET cost = tool_calls.cost + r.cost FROM {rows: call_id, cost}
WHERE tool_calls.call_id = r.call_id
--- update_answer_key
-- The answer to call $1 was given by the key $2.
SET answered_by = $2 WHERE call_id = $1
--- update_question_shown
-- Records that a client has received the question of call $1.
SET told = 1 WHERE call_id = $1 AND told = 0
--- update_repeated_tool_call
-- A call of the job $1 is to be made again, of the tool $3 when that is not NULL.
SET state = 'planned', outcome = NULL, duration_ms = NULL, handled = NULL, completed_at = NULL, again = 1, provider = $3
WHERE job_seq = $1 AND call_id = $2
