-- One limit, to be changed.
-- Differs from SQLite: the row is locked.
SELECT k.name, k.asked, k.overridden FROM rate_keys AS k WHERE k.name = $1 FOR NO KEY UPDATE
