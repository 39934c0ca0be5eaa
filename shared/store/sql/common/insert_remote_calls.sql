-- Calls of remote agents: new ones, those that have begun there, and those to cancel.
INSERT INTO elsewhere {values: call_id, place, job_seq, handle, due_at}
ON CONFLICT (call_id, place) DO UPDATE
SET handle = coalesce(excluded.handle, elsewhere.handle), due_at = excluded.due_at, tries = 0
