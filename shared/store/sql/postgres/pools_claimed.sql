-- Pools, to be claimed from.
-- Differs from SQLite: an array, and rows are locked; those that somebody else has are left out.
SELECT p.name, p.strategy, p.pass
FROM pools AS p
WHERE p.name = ANY($1)
ORDER BY p.name
FOR UPDATE SKIP LOCKED
