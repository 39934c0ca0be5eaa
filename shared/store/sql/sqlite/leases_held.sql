-- Which of these leases still hold. $1: JSON [[id, token], …]. Differs from PostgreSQL: json_each.
SELECT j.lease_token, j.held, j.calls_again
FROM json_each($1) AS r
JOIN jobs AS j ON j.id = r.value ->> 0 AND j.lease_token = r.value ->> 1
WHERE j.state = 'active'
