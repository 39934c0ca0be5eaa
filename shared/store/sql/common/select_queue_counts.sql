SELECT j.queue, j.state, count(*) AS jobs
FROM jobs AS j
--- select_queue_counts
-- Jobs of these queues per state. $2: only those of this tenant; NULL for all.
WHERE j.queue {in: queues} AND ($2 IS NULL OR j.tenant = $2)
GROUP BY j.queue, j.state
--- select_queue_ended_counts
-- Jobs of these queues that ended from $3 on, per state. $2: only those of this tenant; NULL for all.
WHERE j.queue {in: queues} AND ($2 IS NULL OR j.tenant = $2) AND j.ended_at >= $3
GROUP BY j.queue, j.state
--- select_queue_state_counts
-- Jobs that have not ended, per queue and state.
WHERE j.ended_at IS NULL
GROUP BY j.queue, j.state
