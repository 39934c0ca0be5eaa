-- Forgets workers that were last seen before $1.
DELETE FROM workers WHERE seen_at < $1
