-- Answers an open review.
UPDATE reviews
SET state = $2, decided_by = $3, reason = $4, decided_at = $5
WHERE id = $1 AND state = 'open'
