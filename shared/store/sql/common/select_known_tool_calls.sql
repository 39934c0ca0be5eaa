-- Which of these calls are journalled.
SELECT t.call_id FROM tool_calls AS t WHERE t.call_id {in: call_ids}
