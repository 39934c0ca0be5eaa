-- Pauses ($2 = 1) or resumes a queue; one that nobody knew is known from $3 on.
INSERT INTO queues (name, paused, created_at)
VALUES ($1, $2, $3)
ON CONFLICT (name) DO UPDATE SET paused = excluded.paused
