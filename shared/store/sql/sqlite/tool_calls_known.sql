-- Which of these calls are journalled. $1: JSON [[id], …]. Differs from PostgreSQL: json_each.
SELECT t.call_id FROM tool_calls AS t WHERE t.call_id IN (SELECT r.value ->> 0 FROM json_each($1) AS r)
