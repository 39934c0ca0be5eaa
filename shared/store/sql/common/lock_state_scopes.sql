-- Versions of scopes, to be changed. Rows are locked in one order for all.
SELECT s.name, s.version
FROM state_scopes AS s
WHERE s.name {in: names}
ORDER BY s.name
{lock}
