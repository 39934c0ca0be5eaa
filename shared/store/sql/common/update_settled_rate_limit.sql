-- Gives back to a bucket, or takes. What is more than it holds runs over when it is read next.
UPDATE rate_limits
SET tokens = tokens + $2
WHERE name = $1
RETURNING name
