-- Somebody was told of review $1.
UPDATE reviews SET told = 1 WHERE id = $1 AND told = 0
