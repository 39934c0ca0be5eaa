-- Calls of agents elsewhere that leave, that have begun there, or that nobody waits for any more.
-- Differs from SQLite: an array per column.
INSERT INTO elsewhere (call_id, place, job_seq, handle, due_at)
SELECT * FROM unnest($1, $2, $3, $4, $5)
ON CONFLICT (call_id, place) DO UPDATE
SET handle = coalesce(excluded.handle, elsewhere.handle), due_at = excluded.due_at, tries = 0
