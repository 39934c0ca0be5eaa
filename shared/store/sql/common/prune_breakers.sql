-- Forgets what has not failed since $1.
DELETE FROM breakers WHERE failed_at < $1
