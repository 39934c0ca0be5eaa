-- When the job became available that has waited longest, per queue that has any.
SELECT j.queue, min(j.run_at) AS run_at
FROM jobs AS j
WHERE j.state = 'available'
GROUP BY j.queue
