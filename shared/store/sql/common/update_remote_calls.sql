UPDATE elsewhere
--- update_abandoned_remote_calls
-- Jobs have ended without what agents elsewhere do for them: those are to be called off.
SET due_at = r.due_at
FROM {rows: job_seq, due_at}
WHERE elsewhere.job_seq = r.job_seq AND elsewhere.due_at IS NULL
--- update_remote_call_retry
-- Call $1 at place $2 is called off again at $4, after $3 tries.
SET due_at = $4
WHERE call_id = $1 AND place = $2 AND tries = $3 AND due_at IS NOT NULL
--- update_taken_remote_call
-- Somebody calls off call $1 at place $2, which was tried $3 times before; nobody else does before $4.
SET due_at = $4, tries = tries + 1
WHERE call_id = $1 AND place = $2 AND tries = $3 AND due_at IS NOT NULL
