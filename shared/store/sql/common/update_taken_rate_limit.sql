-- Takes out of a bucket; no row when it is not as it was read, because another process was faster.
UPDATE rate_limits
SET requests = $2, tokens = $3, as_of = $4
WHERE name = $1 AND requests = $5 AND tokens = $6 AND as_of = $7
RETURNING name
