-- Somebody calls off call $1 at place $2, which was tried $3 times before; nobody else does before $4.
UPDATE elsewhere
SET due_at = $4, tries = tries + 1
WHERE call_id = $1 AND place = $2 AND tries = $3 AND due_at IS NOT NULL
