-- How many jobs of these queues are active.
-- Differs from SQLite: an array.
SELECT r.name, (SELECT count(*) FROM jobs AS j WHERE j.state = 'active' AND j.queue = r.name) AS active
FROM unnest($1) AS r (name)
