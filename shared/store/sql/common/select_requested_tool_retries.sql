-- How often a call was asked to be made again.
SELECT r.attempts FROM tool_retries AS r WHERE r.job_seq = $1 AND r.call_id = $2
