-- The earliest time at which a duty of the scheduler has work. The timeout of an agent job has five seconds of grace
-- (ops/time_out.rs); one of a hundred years is left out, because the sum might not be a number. A worker over HTTP may
-- be silent for thirty seconds (ops/upkeep.rs).
SELECT min(due) AS due
FROM (SELECT min(run_at) AS due FROM jobs WHERE state IN ('scheduled', 'retryable')
      UNION ALL
      SELECT min(lease_expires_at) FROM jobs WHERE state = 'active'
      UNION ALL
      SELECT min(claimed_at + timeout_ms + CASE WHEN kind = 'plain' THEN 0 ELSE 5000 END) FROM jobs
      WHERE state = 'active' AND timeout_ms < 3155760000000
      UNION ALL
      SELECT min(CASE WHEN j.claimed_at > w.seen_at THEN j.claimed_at ELSE w.seen_at END) + 30000
      FROM jobs AS j JOIN workers AS w ON w.name = j.worker_id
      WHERE j.state = 'active' AND j.kind = 'plain' AND w.kind = 'http'
      UNION ALL
      SELECT min(expires_at) FROM jobs WHERE expires_at IS NOT NULL AND ended_at IS NULL
      UNION ALL
      SELECT min(opens_at) FROM rate_keys WHERE opens_at IS NOT NULL
      UNION ALL
      SELECT min(opens_at) FROM queues
      UNION ALL
      SELECT min(due_at) FROM budget_waits WHERE due_at IS NOT NULL
      UNION ALL
      SELECT min(release_at) FROM breakers WHERE release_at IS NOT NULL
      UNION ALL
      SELECT min(deadline_at) FROM reviews WHERE state = 'open' AND asked IS NULL
      UNION ALL
      SELECT min(remind_at) FROM reviews WHERE state = 'open'
      UNION ALL
      SELECT min(deadline_at) FROM delegations WHERE state = 'open'
      UNION ALL
      SELECT min(next_run_at) FROM crons WHERE next_run_at IS NOT NULL) AS dues
