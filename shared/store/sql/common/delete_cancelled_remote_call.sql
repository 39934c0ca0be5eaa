-- Deletes call $1 at place $2: try $3 cancelled it, or no further try is made.
DELETE FROM elsewhere
WHERE call_id = $1 AND place = $2 AND tries = $3 AND due_at IS NOT NULL
