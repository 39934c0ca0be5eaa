-- Remembers queues.
INSERT INTO queues {values: name, created_at}
ON CONFLICT (name) DO NOTHING
