-- Events. $1: JSON rows. Differs from PostgreSQL: json_each.
INSERT INTO events (stream, seq, job_seq, name, turn, data, at)
SELECT r.value ->> 0, r.value ->> 1, r.value ->> 2, r.value ->> 3, r.value ->> 4, r.value ->> 5, r.value ->> 6
FROM json_each($1) AS r
