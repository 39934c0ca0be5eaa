UPDATE rate_limits
--- update_settled_rate_limit
-- Gives back to a bucket, or takes. What is more than it holds runs over when it is read next.
SET tokens = tokens + $2
WHERE name = $1
RETURNING name
--- update_taken_rate_limit
-- Takes out of a bucket; no row when it is not as it was read, because another process was faster.
SET requests = $2, tokens = $3, as_of = $4
WHERE name = $1 AND requests = $5 AND tokens = $6 AND as_of = $7
RETURNING name
