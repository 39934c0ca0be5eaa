UPDATE elsewhere
--- update_abandoned_remote_calls
-- Jobs have ended without their remote calls, which are to be cancelled.
SET due_at = r.due_at
FROM {rows: job_seq, due_at}
WHERE elsewhere.job_seq = r.job_seq AND elsewhere.due_at IS NULL
--- update_remote_call_retry
-- Call $1 at place $2 is to be cancelled again at $4, after $3 tries.
SET due_at = $4
WHERE call_id = $1 AND place = $2 AND tries = $3 AND due_at IS NOT NULL
--- update_taken_remote_call
-- A worker cancels call $1 at place $2, which was tried $3 times before; no other worker does before $4.
SET due_at = $4, tries = tries + 1
WHERE call_id = $1 AND place = $2 AND tries = $3 AND due_at IS NOT NULL
