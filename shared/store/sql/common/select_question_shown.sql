-- A row when a client has received the call or the review $1.
SELECT t.call_id AS id FROM tool_calls AS t WHERE t.call_id = $1 AND t.told = 1
UNION ALL
SELECT v.id AS id FROM reviews AS v WHERE v.id = $1 AND v.told = 1
