-- Calls of agents elsewhere that are over.
DELETE FROM elsewhere
WHERE (call_id, place) IN (SELECT r.call_id, r.place FROM {rows: call_id, place})
