-- Forgets what is known against $1.
DELETE FROM breakers WHERE name = $1
