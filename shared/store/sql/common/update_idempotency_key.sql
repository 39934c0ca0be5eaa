-- Records the jobs $2 and the answer $3 of a push under the idempotency key $1.
UPDATE idempotency_keys SET pushed = $2, answer = $3 WHERE name = $1
