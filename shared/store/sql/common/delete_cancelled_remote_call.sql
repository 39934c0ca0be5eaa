-- Call $1 at place $2 was called off with try $3, or nobody tries any more.
DELETE FROM elsewhere
WHERE call_id = $1 AND place = $2 AND tries = $3 AND due_at IS NOT NULL
