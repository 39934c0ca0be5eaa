-- One limit, to be changed.
-- Differs from PostgreSQL: there the row is locked.
SELECT k.name, k.asked, k.overridden FROM rate_keys AS k WHERE k.name = $1
