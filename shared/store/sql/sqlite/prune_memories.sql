-- Forgets what agents remember of jobs that go. Differs from PostgreSQL: json_each.
DELETE FROM memories WHERE job_seq IN (SELECT r.value ->> 0 FROM json_each($1) AS r)
