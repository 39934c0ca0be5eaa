-- Remembers queues. Differs from SQLite: an array per column.
INSERT INTO queues (name, created_at)
SELECT * FROM unnest($1, $2)
ON CONFLICT (name) DO NOTHING
