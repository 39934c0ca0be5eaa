-- Pools, to be claimed from.
SELECT p.name, p.strategy, p.pass
FROM pools AS p
WHERE p.name {in: names}
ORDER BY p.name
{lock skip}
