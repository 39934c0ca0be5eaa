-- How many jobs ever ended, per queue and state, as far as the statistics have come.
SELECT s.queue, s.state, CAST(sum(s.jobs) AS BIGINT) AS jobs
FROM statistics AS s
GROUP BY s.queue, s.state
