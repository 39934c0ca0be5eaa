-- Remembers queue names. Differs from SQLite: an array per column.
INSERT INTO queues (name)
SELECT * FROM unnest($1)
ON CONFLICT (name) DO NOTHING
