-- The call of engagement $1 whose answer was given by the key $2.
SELECT t.call_id, j.id AS job_id, t.outcome
FROM engagements AS e
JOIN tool_calls AS t ON t.engagement_seq = e.seq AND t.answered_by = $2
JOIN jobs AS j ON j.seq = t.job_seq
WHERE e.id = $1
