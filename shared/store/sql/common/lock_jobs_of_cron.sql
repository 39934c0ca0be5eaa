-- Jobs of the cron entry $1 of tenant $2 that have not ended. Rows are locked in one order for all.
SELECT j.seq, j.id, j.job_type, j.queue, j.state, j.priority, j.attempt, j.failures, j.lapses, j.created_at, j.run_at, j.started_at, j.ended_at, j.expires_at, j.timeout_ms, j.engagement_seq, j.stream, j.position, j.reserved, j.tokens_used, j.events, j.worker_id, j.lease_token, j.lease_expires_at, j.retry_delay_ms, j.claimed_at, j.tenant, j.visibility_ms, j.lease_ms, j.limit_key, j.workflow_seq, j.workflow_step, j.held, j.dead_letter, j.runtime_tags
FROM jobs AS j
WHERE j.cron_name = $1 AND COALESCE(j.tenant, '') = $2 AND j.ended_at IS NULL
ORDER BY j.seq
{lock}
