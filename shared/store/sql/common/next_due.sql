-- The earliest time at which a duty of the scheduler has work. A timeout has five seconds of grace (ops/time_out.rs), and one
-- of a hundred years none, because the sum might not be a number.
SELECT min(due) AS due
FROM (SELECT min(run_at) AS due FROM jobs WHERE state IN ('scheduled', 'retryable')
      UNION ALL
      SELECT min(lease_expires_at) FROM jobs WHERE state = 'active'
      UNION ALL
      SELECT min(claimed_at + timeout_ms) + 5000 FROM jobs
      WHERE state = 'active' AND timeout_ms < 3155760000000
      UNION ALL
      SELECT min(expires_at) FROM jobs WHERE expires_at IS NOT NULL AND ended_at IS NULL
      UNION ALL
      SELECT min(deadline_at) FROM reviews WHERE state = 'open') AS dues
