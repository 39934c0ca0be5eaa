-- Closes a batch. One that has ended and received further jobs is open again until they have ended, too. $1 tag, $2
-- tenant, $3 now.
INSERT INTO batches (tag, tenant, closed_at)
VALUES ($1, $2, $3)
ON CONFLICT (tag, tenant) DO UPDATE SET closed_at = excluded.closed_at, ended_at = NULL
WHERE batches.ended_at IS NOT NULL
  AND EXISTS (SELECT 1 FROM job_tags AS t
              JOIN jobs AS j ON j.seq = t.job_seq
              WHERE t.tag = batches.tag AND (batches.tenant = '' OR j.tenant = batches.tenant)
                AND (j.ended_at IS NULL OR j.created_at >= batches.ended_at))
