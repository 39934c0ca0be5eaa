-- Calls that others stand for. $1: JSON rows. Differs from PostgreSQL: json_each.
INSERT INTO stubs (job_seq, call_id, of_call)
SELECT r.value ->> 0, r.value ->> 1, r.value ->> 2 FROM json_each($1) AS r
