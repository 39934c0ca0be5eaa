-- Versions of scopes, to be changed. $1: names. Differs from SQLite: an array, and the rows are locked, in one order for all.
SELECT s.name, s.version
FROM state_scopes AS s
WHERE s.name = ANY($1)
ORDER BY s.name
FOR UPDATE
