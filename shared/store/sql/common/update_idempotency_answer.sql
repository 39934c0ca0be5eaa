-- Records the answer $3 to the request $2 under the idempotency key $1, unless one is on record, and returns the recorded one.
UPDATE idempotency_keys
SET answer = coalesce(answer, $3)
WHERE name = $1 AND request = $2
RETURNING name, answer
