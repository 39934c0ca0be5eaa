-- Limits that may allow something at $3 and have jobs of kind $1 set aside in queue $2, at most $4 of them.
SELECT k.name
FROM rate_keys AS k
WHERE k.waiting = 1 AND k.next_at <= $3
  AND EXISTS (SELECT 1 FROM jobs AS j
              WHERE j.limit_key = k.name AND j.queue = $2 AND j.kind = $1 AND j.state = 'available' AND j.set_aside = 1)
ORDER BY k.next_at
LIMIT $4
