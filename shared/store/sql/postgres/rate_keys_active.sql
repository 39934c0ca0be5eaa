-- How many jobs that name these limits are active.
-- Differs from SQLite: an array.
SELECT r.name, (SELECT count(*) FROM jobs AS j WHERE j.state = 'active' AND j.limit_key = r.name) AS active
FROM unnest($1) AS r (name)
