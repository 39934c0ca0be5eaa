-- How many jobs that name these limits are active.
SELECT r.name, (SELECT count(*) FROM jobs AS j WHERE j.state = 'active' AND j.limit_key = r.name) AS active
FROM {rows: name}
