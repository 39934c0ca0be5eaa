-- The next $1 numbers for jobs and workflows. An engagement and its totals take the number of their first job.
-- Differs from SQLite: many writers, so a sequence gives the numbers.
SELECT nextval('jobs_seq') AS seq FROM generate_series(1, $1)
