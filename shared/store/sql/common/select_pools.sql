-- Pools by name. $1: only this one; NULL for all.
SELECT p.name, p.strategy, p.config, p.created_at, p.updated_at
FROM pools AS p
WHERE $1 IS NULL OR p.name = $1
ORDER BY p.name
