-- What jobs asked of these limits last.
-- Differs from SQLite: an array.
SELECT k.name, k.asked FROM rate_keys AS k WHERE k.name = ANY($1)
