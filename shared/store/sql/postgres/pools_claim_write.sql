-- The virtual time of pools. Rows: name, pass.
-- Differs from SQLite: an array per column.
UPDATE pools
SET pass = r.pass
FROM unnest($1, $2) AS r (name, pass)
WHERE pools.name = r.name
