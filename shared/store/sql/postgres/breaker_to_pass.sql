-- The breaker $1. Differs from SQLite: the row is locked.
SELECT name, failures, open_until FROM breakers WHERE name = $1 FOR UPDATE
