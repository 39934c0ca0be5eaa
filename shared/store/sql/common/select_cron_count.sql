-- How many cron entries tenant $1 has; an empty name is that of the fleet.
SELECT count(*) AS entries
FROM crons AS c
WHERE c.tenant = $1
