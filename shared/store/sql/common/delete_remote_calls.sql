-- Deletes calls of remote agents that have ended.
DELETE FROM elsewhere
WHERE (call_id, place) IN (SELECT r.call_id, r.place FROM {rows: call_id, place})
