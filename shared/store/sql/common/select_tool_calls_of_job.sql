SELECT {columns of call}
FROM tool_calls AS t
--- select_tool_calls_of_job
-- The tool journal of a job, in order.
WHERE t.job_seq = $1
ORDER BY t.seq
--- select_question_of_job
-- The call $2 of job $1.
WHERE t.job_seq = $1 AND t.call_id = $2
--- select_tool_call_by_id
-- The call $2 of the tool journal of engagement $1.
JOIN engagements AS e ON e.seq = t.engagement_seq
WHERE e.id = $1 AND t.call_id = $2
