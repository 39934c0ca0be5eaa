-- Deletes the breaker $1.
DELETE FROM breakers WHERE name = $1
