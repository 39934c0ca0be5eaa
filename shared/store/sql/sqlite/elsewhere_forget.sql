-- Calls of agents elsewhere that are over. $1: JSON [[call, place], …]. Differs from PostgreSQL: json_each.
DELETE FROM elsewhere
WHERE (call_id, place) IN (SELECT r.value ->> 0, r.value ->> 1 FROM json_each($1) AS r)
