-- The virtual time of pools.
UPDATE pools
SET pass = r.pass
FROM {rows: name, pass}
WHERE pools.name = r.name
