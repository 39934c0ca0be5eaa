-- The no of a review counts no more.
UPDATE reviews SET spent = 1 WHERE id = $1
