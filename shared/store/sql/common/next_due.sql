-- The earliest time at which a duty of the scheduler has work.
SELECT min(due)
FROM (SELECT min(run_at) AS due FROM jobs WHERE state IN ('scheduled', 'retryable')
      UNION ALL
      SELECT min(lease_expires_at) FROM jobs WHERE state = 'active'
      UNION ALL
      SELECT min(expires_at) FROM jobs WHERE expires_at IS NOT NULL AND ended_at IS NULL
      UNION ALL
      SELECT min(deadline_at) FROM reviews WHERE state = 'open') AS dues
