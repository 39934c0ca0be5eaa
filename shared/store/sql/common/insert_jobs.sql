-- New jobs.
INSERT INTO jobs {values: seq, id, job_type, queue, state, priority, created_at, run_at, expires_at, timeout_ms,
                          engagement_seq, stream, position, events, kind, tenant, visibility_ms, limit_key, unique_key,
                          workflow_seq, workflow_step, cron_name, dead_letter, runtime_tags}
