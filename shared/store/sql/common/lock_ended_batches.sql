-- Closed batches whose jobs have all ended, at most $1.
SELECT b.tag, b.tenant
FROM batches AS b
WHERE b.ended_at IS NULL
  AND NOT EXISTS (SELECT 1 FROM job_tags AS t
                  JOIN jobs AS j ON j.seq = t.job_seq
                  WHERE t.tag = b.tag AND (b.tenant = '' OR j.tenant = b.tenant) AND j.ended_at IS NULL)
ORDER BY b.closed_at
LIMIT $1
{lock of b skip}
