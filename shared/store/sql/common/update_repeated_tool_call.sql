-- A call of the job $1 is to be made again, of the tool $3 when that is not NULL.
UPDATE tool_calls
SET state = 'planned', outcome = NULL, duration_ms = NULL, handled = NULL, completed_at = NULL, again = 1, provider = $3
WHERE job_seq = $1 AND call_id = $2
