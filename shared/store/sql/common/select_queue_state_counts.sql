-- Jobs that have not ended, per queue and state.
SELECT j.queue, j.state, count(*) AS jobs
FROM jobs AS j
WHERE j.ended_at IS NULL
GROUP BY j.queue, j.state
