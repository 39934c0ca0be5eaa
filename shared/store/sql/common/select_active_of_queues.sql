-- How many jobs of these queues are active.
SELECT r.name, (SELECT count(*) FROM jobs AS j WHERE j.state = 'active' AND j.queue = r.name) AS active
FROM {rows: name}
