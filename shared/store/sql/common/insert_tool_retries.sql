-- Counts one more request to make a call again.
INSERT INTO tool_retries (job_seq, call_id, attempts)
VALUES ($1, $2, 1)
ON CONFLICT (job_seq, call_id) DO UPDATE SET attempts = tool_retries.attempts + 1
