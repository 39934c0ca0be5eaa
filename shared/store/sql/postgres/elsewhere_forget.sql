-- Calls of agents elsewhere that are over. Differs from SQLite: an array per column.
DELETE FROM elsewhere
USING unnest($1, $2) AS r (call_id, place)
WHERE elsewhere.call_id = r.call_id AND elsewhere.place = r.place
