-- Ended jobs per hour, queue and state, newest first, from $1 on.
SELECT s.hour, s.queue, s.state, s.jobs, s.tokens, s.took_ms
FROM statistics AS s
WHERE s.hour >= $1
ORDER BY s.hour DESC, s.queue, s.state
