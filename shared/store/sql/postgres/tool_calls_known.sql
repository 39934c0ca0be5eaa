-- Which of these calls are journalled. $1: ids. Differs from SQLite: an array.
SELECT t.call_id FROM tool_calls AS t WHERE t.call_id = ANY($1)
