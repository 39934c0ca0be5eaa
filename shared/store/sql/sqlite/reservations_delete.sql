-- Reservations that are settled or given back. $1: JSON [[job seq], …]. Differs from PostgreSQL: json_each.
DELETE FROM reservations WHERE job_seq IN (SELECT r.value ->> 0 FROM json_each($1) AS r)
