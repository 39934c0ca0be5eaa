-- Which of these leases still hold. Only an active job has a token.
SELECT j.lease_token, j.held, j.calls_again
FROM {rows: id, token}
JOIN jobs AS j ON j.id = r.id AND j.lease_token = r.token
