-- What jobs reserve. $1: JSON rows. Differs from PostgreSQL: json_each.
INSERT INTO reservations (job_seq, budget_seq, tokens, money)
SELECT r.value ->> 0, r.value ->> 1, r.value ->> 2, r.value ->> 3 FROM json_each($1) AS r
