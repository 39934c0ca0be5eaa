-- How many webhooks tenant $1 has; NULL is the fleet.
SELECT count(*) AS entries
FROM webhooks AS w
WHERE w.tenant = $1 OR ($1 IS NULL AND w.tenant IS NULL)
