-- The breaker $1. Differs from SQLite: the row is locked.
SELECT name, state, release_at FROM breakers WHERE name = $1 FOR UPDATE
