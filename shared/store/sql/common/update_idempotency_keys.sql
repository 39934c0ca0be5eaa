UPDATE idempotency_keys
--- update_idempotency_answer
-- Records the answer to a request under its idempotency key, unless one is on record, and returns the recorded one.
SET answer = coalesce(idempotency_keys.answer, r.answer)
FROM {rows: name, request, answer}
WHERE idempotency_keys.name = r.name AND idempotency_keys.request = r.request
RETURNING idempotency_keys.name, idempotency_keys.answer
--- update_idempotency_key
-- Records the jobs and the answer of a push under its idempotency key.
SET pushed = r.pushed, answer = r.answer
FROM {rows: name, pushed, answer}
WHERE idempotency_keys.name = r.name
