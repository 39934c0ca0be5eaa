-- New jobs. $1: JSON rows. Differs from PostgreSQL: json_each.
INSERT INTO jobs (seq, id, job_type, queue, state, priority, created_at, run_at, expires_at, timeout_ms,
                  engagement_seq, stream, position, events, kind, tenant, visibility_ms, limit_key,
                  unique_key, workflow_seq, workflow_step, cron_name, dead_letter, runtime_tags)
SELECT r.value ->> 0, r.value ->> 1, r.value ->> 2, r.value ->> 3, r.value ->> 4, r.value ->> 5, r.value ->> 6,
       r.value ->> 7, r.value ->> 8, r.value ->> 9, r.value ->> 10, r.value ->> 11, r.value ->> 12, r.value ->> 13, r.value ->> 14,
       r.value ->> 15, r.value ->> 16, r.value ->> 17, r.value ->> 18, r.value ->> 19, r.value ->> 20, r.value ->> 21,
       r.value ->> 22, r.value ->> 23
FROM json_each($1) AS r
