-- Pauses ($2 = 1) or resumes a queue, which is created at $3 if it is unknown.
INSERT INTO queues (name, paused, created_at)
VALUES ($1, $2, $3)
ON CONFLICT (name) DO UPDATE SET paused = excluded.paused
