-- Which of these limits have jobs that are set aside.
SELECT r.name
FROM {rows: name}
WHERE EXISTS (SELECT 1 FROM jobs AS j WHERE j.limit_key = r.name AND j.state = 'available' AND j.set_aside = 1)
