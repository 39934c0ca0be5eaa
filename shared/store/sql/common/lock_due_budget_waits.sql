-- Jobs that waited for a budget and may go on at $1, at most $2, with the attempt that did not fit.
SELECT j.seq, j.id, j.job_type, j.queue, j.state, j.priority, j.attempt, j.failures, j.lapses, j.created_at, j.run_at, j.started_at, j.ended_at, j.expires_at, j.timeout_ms, j.engagement_seq, j.stream, j.position, j.reserved, j.tokens_used, j.events, j.worker_id, j.lease_token, j.lease_expires_at, j.retry_delay_ms, j.claimed_at, j.tenant, j.visibility_ms, j.lease_ms, j.limit_key, j.workflow_seq, j.workflow_step, j.held, j.dead_letter, j.runtime_tags, w.attempt AS waits_since
FROM budget_waits AS w
JOIN jobs AS j ON j.seq = w.job_seq
WHERE w.due_at <= $1
ORDER BY j.seq
LIMIT $2
{lock of j skip}
