SELECT {columns of job}
--- lock_jobs
-- Jobs by id, to be changed. Rows are locked in one order for all.
FROM jobs AS j
WHERE j.id {in: ids}
ORDER BY j.seq
{lock}
--- lock_job
-- One job, to be changed. $1 id, $2 tenant; NULL means every tenant. A client of the tenant may have chosen the id. The
-- tenant is compared in a form that no index serves: a job is found by its id, however few jobs a tenant has.
FROM jobs AS j
WHERE j.id IN ($1, $1 || '~' || $2) AND coalesce(j.tenant = $2, $2 IS NULL)
{lock}
--- lock_jobs_by_lease
-- Jobs whose fencing token matches: the only ones that may be written. Only an active job has a token; not saying so
-- keeps the planner from walking all active jobs.
FROM {rows: id, token}
JOIN jobs AS j ON j.id = r.id AND j.lease_token = r.token
ORDER BY j.seq
{lock of j}
--- lock_chosen_jobs
-- Active jobs with ids that clients chose for their tenants: by these ids without the tenants.
FROM jobs AS j
WHERE substr(j.id, 1, 36) {in: ids} AND substr(j.id, 37, 1) = '~' AND j.state = 'active'
ORDER BY j.seq
{lock}
--- lock_due_jobs
-- Scheduled and retryable jobs whose time has come.
FROM jobs AS j
WHERE j.state IN ('scheduled', 'retryable') AND j.run_at <= $1
ORDER BY j.run_at
LIMIT $2
{lock skip}
--- lock_expiring_jobs
-- Jobs that have not ended before their expires_at.
FROM jobs AS j
WHERE j.expires_at IS NOT NULL AND j.ended_at IS NULL AND j.expires_at <= $1
ORDER BY j.expires_at
LIMIT $2
{lock skip}
--- lock_lapsed_jobs
-- Active jobs whose lease has run out at $1. One that began before $3 lasts $4 ms longer, because the clock stepped forward, and
-- one that began before $5 lasts $6 ms longer.
FROM jobs AS j
WHERE j.state = 'active'
  AND j.lease_expires_at <= $1 - CASE WHEN j.lease_expires_at - coalesce(j.lease_ms, 0) < $3 THEN $4 ELSE 0 END
                               - CASE WHEN j.lease_expires_at - coalesce(j.lease_ms, 0) < $5 THEN $6 ELSE 0 END
ORDER BY j.seq
LIMIT $2
{lock skip}
--- lock_timed_out_jobs
-- Active jobs whose attempt has outlasted its timeout at $1; agent jobs have $3 ms of grace, in which their worker
-- ends it itself. An attempt that began before $4 lasts $5 ms longer, because the clock stepped forward, one that began before $6
-- $7 ms longer, and one that began after $8 $9 ms shorter, because it stepped back.
FROM jobs AS j
WHERE j.state = 'active' AND j.timeout_ms IS NOT NULL
  AND j.timeout_ms <= $1 - j.claimed_at - CASE WHEN j.claimed_at < $4 THEN $5 ELSE 0 END
                      - CASE WHEN j.claimed_at < $6 THEN $7 WHEN j.claimed_at > $8 THEN -$9 ELSE 0 END
                      - CASE WHEN j.kind = 'plain' THEN 0 ELSE $3 END
ORDER BY j.seq
LIMIT $2
{lock skip}
--- lock_jobs_of_cron
-- Jobs of the cron entry $1 of tenant $2 that have not ended. Rows are locked in one order for all.
FROM jobs AS j
WHERE j.cron_name = $1 AND COALESCE(j.tenant, '') = $2 AND j.ended_at IS NULL
ORDER BY j.seq
{lock}
--- lock_jobs_of_silent_workers
-- Plain jobs whose worker has beaten, and has been silent since $1. What was written before $3 is $4 ms younger, because the clock
-- stepped forward, and what was written before $5 is $6 ms younger.
FROM jobs AS j
JOIN workers AS w ON w.name = j.worker_id
WHERE j.state = 'active' AND j.kind = 'plain' AND w.kind = 'http'
  AND w.seen_at <= $1 - CASE WHEN w.seen_at < $3 THEN $4 ELSE 0 END - CASE WHEN w.seen_at < $5 THEN $6 ELSE 0 END
  AND j.claimed_at <= $1 - CASE WHEN j.claimed_at < $3 THEN $4 ELSE 0 END - CASE WHEN j.claimed_at < $5 THEN $6 ELSE 0 END
ORDER BY j.seq
LIMIT $2
{lock of j skip}
