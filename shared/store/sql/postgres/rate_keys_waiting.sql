-- Which of these limits have jobs that are set aside.
-- Differs from SQLite: an array.
SELECT r.name
FROM unnest($1) AS r (name)
WHERE EXISTS (SELECT 1 FROM jobs AS j WHERE j.limit_key = r.name AND j.state = 'available' AND j.set_aside = 1)
