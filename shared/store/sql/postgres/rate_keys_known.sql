-- What jobs asked of these limits last. None of them is forgotten before this transaction ends; claims go on.
-- Differs from SQLite: an array, and the rows are locked.
SELECT k.name, k.asked FROM rate_keys AS k WHERE k.name = ANY($1) ORDER BY k.name FOR KEY SHARE
