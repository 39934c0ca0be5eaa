-- How many workflows there are of a tenant and in a state. NULL means all.
SELECT count(*) AS workflows
FROM workflows AS w
WHERE ($1 IS NULL OR w.tenant = $1) AND ($2 IS NULL OR w.state = $2)
