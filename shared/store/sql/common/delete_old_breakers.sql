-- Forgets what has not changed since $1.
DELETE FROM breakers WHERE changed_at < $1
