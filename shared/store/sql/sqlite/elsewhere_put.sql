-- Calls of agents elsewhere that leave, that have begun there, or that nobody waits for any more.
-- $1: JSON [[call, place, job seq, handle, due at], …]. Differs from PostgreSQL: json_each.
INSERT INTO elsewhere (call_id, place, job_seq, handle, due_at)
SELECT r.value ->> 0, r.value ->> 1, r.value ->> 2, r.value ->> 3, r.value ->> 4
FROM json_each($1) AS r WHERE true
ON CONFLICT (call_id, place) DO UPDATE
SET handle = coalesce(excluded.handle, elsewhere.handle), due_at = excluded.due_at, tries = 0
