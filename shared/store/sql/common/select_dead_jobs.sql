-- Dead letters, newest first. $1 queue, $2 type, $3 tenant, accepted from $4 until before $5; NULL matches all.
SELECT j.seq, j.id, j.job_type, j.queue, j.state, j.priority, j.attempt, j.failures, j.lapses, j.created_at, j.run_at, j.started_at, j.ended_at, j.expires_at, j.timeout_ms, j.engagement_seq, j.stream, j.position, j.reserved, j.tokens_used, j.events, j.worker_id, j.lease_token, j.lease_expires_at, j.retry_delay_ms, j.claimed_at, j.tenant, j.visibility_ms, j.lease_ms, j.limit_key, j.workflow_seq, j.workflow_step, j.held, j.dead_letter, j.runtime_tags
FROM jobs AS j
WHERE j.state = 'discarded' AND j.dead_letter = 1 AND ($1 IS NULL OR j.queue = $1) AND ($2 IS NULL OR j.job_type = $2)
  AND ($3 IS NULL OR j.tenant = $3) AND ($4 IS NULL OR j.created_at >= $4) AND ($5 IS NULL OR j.created_at < $5)
ORDER BY j.seq DESC
LIMIT $6 OFFSET $7
