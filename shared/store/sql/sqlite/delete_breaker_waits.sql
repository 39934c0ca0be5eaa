-- Deletes the breakers that jobs waited for. $1: JSON [[seq], …]. Differs from PostgreSQL: json_each.
DELETE FROM breaker_waits WHERE job_seq IN (SELECT r.value ->> 0 FROM json_each($1) AS r)
