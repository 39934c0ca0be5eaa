-- Call $1 at place $2 is called off again at $4, after $3 tries.
UPDATE elsewhere
SET due_at = $4
WHERE call_id = $1 AND place = $2 AND tries = $3 AND due_at IS NOT NULL
